/** etcd's errors, by the texts and codes that its clients match on (L2, pure). Upstream: etcd api/v3rpc/rpctypes/error.go (v3.6). */
import type { StatusName } from '#grpc/grpcError'
import { GrpcRefusal } from '#grpc/grpcService'
import type { StoreError } from '../store.ts'
import { isStoreError } from '../storeError.ts'

const refusals = {
  emptyKey: ['INVALID_ARGUMENT', 'key is not provided'],
  keyNotFound: ['INVALID_ARGUMENT', 'key not found'],
  valueProvided: ['INVALID_ARGUMENT', 'value is provided'],
  leaseProvided: ['INVALID_ARGUMENT', 'lease is provided'],
  tooManyOperations: ['INVALID_ARGUMENT', 'too many operations in txn request'],
  duplicateKey: ['INVALID_ARGUMENT', 'duplicate key given in txn request'],
  invalidSortOption: ['INVALID_ARGUMENT', 'invalid sort option'],
  tooLarge: ['INVALID_ARGUMENT', 'request is too large'],
  compacted: ['OUT_OF_RANGE', 'mvcc: required revision has been compacted'],
  futureRevision: ['OUT_OF_RANGE', 'mvcc: required revision is a future revision'],
  corrupt: ['DATA_LOSS', 'corrupt cluster'],
  noSpace: ['RESOURCE_EXHAUSTED', 'mvcc: database space exceeded'],
  leaseNotFound: ['NOT_FOUND', 'requested lease not found'],
  leaseExists: ['FAILED_PRECONDITION', 'lease already exists'],
  ttlTooLarge: ['OUT_OF_RANGE', 'too large lease TTL'],
  tooManyRequests: ['RESOURCE_EXHAUSTED', 'too many requests'],
  rootUserNotExist: ['FAILED_PRECONDITION', 'root user does not exist'],
  rootRoleNotExist: ['FAILED_PRECONDITION', 'root user does not have root role'],
  userAlreadyExist: ['FAILED_PRECONDITION', 'user name already exists'],
  userEmpty: ['INVALID_ARGUMENT', 'user name is empty'],
  userNotFound: ['FAILED_PRECONDITION', 'user name not found'],
  roleAlreadyExist: ['FAILED_PRECONDITION', 'role name already exists'],
  roleNotFound: ['FAILED_PRECONDITION', 'role name not found'],
  roleEmpty: ['INVALID_ARGUMENT', 'role name is empty'],
  authFailed: ['INVALID_ARGUMENT', 'authentication failed, invalid user ID or password'],
  permissionNotGiven: ['INVALID_ARGUMENT', 'permission not given'],
  permissionDenied: ['PERMISSION_DENIED', 'permission denied'],
  roleNotGranted: ['FAILED_PRECONDITION', 'role is not granted to the user'],
  permissionNotGranted: ['FAILED_PRECONDITION', 'permission is not granted to the role'],
  authNotEnabled: ['FAILED_PRECONDITION', 'authentication is not enabled'],
  invalidAuthToken: ['UNAUTHENTICATED', 'invalid auth token'],
  invalidAuthManagement: ['INVALID_ARGUMENT', 'invalid auth management'],
  authOldRevision: ['INVALID_ARGUMENT', 'revision of auth store is old'],
  closed: ['UNAVAILABLE', 'server stopped'],
  unavailable: ['UNAVAILABLE', 'request timed out'],
  unknownOutcome: ['UNAVAILABLE', 'request timed out'],
} as const satisfies Record<StoreError['code'] | string, readonly [StatusName, string]>

export function refusal(name: keyof typeof refusals): GrpcRefusal {
  const [code, text] = refusals[name]
  return new GrpcRefusal(code, `etcdserver: ${text}`)
}

/** For a part of etcd's API that this server lacks. */
export function notServed(what: string): GrpcRefusal {
  return new GrpcRefusal('UNIMPLEMENTED', `skiff: ${what}`)
}

/** The error of a call for one of the store; any other stays as it is. */
export function refusalOf(error: unknown): unknown {
  return isStoreError(error) ? refusal(error.code) : error
}
