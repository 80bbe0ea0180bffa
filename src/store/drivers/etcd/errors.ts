/** What failed calls to etcd mean to the store's callers (L2). Upstream: etcd api/v3rpc/rpctypes/error.go, client/v3/retry.go. */
import { GrpcError } from '#grpc/grpcError'
import type { StoreError } from '../../store.ts'
import { storeError } from '../../storeError.ts'

const codes: readonly (readonly [text: string, code: StoreError['code']])[] = [
  ['required revision has been compacted', 'compacted'],
  ['required revision is a future revision', 'futureRevision'],
  ['requested lease not found', 'leaseNotFound'],
  ['database space exceeded', 'noSpace'],
  ['request is too large', 'tooLarge'],
  ['received message larger than max', 'tooLarge'],
  // The member refused before it proposed anything.
  ['no leader', 'unavailable'],
  ['too many requests', 'unavailable'],
]

/** The statuses after which a write may have been carried out, or still will be. */
const uncertain = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED', 'INTERNAL', 'UNKNOWN', 'ABORTED', 'RESOURCE_EXHAUSTED'])

/** Whether the next endpoint may do better: this one is not reached, or has no part in the cluster at present. */
export function isOutage(error: unknown): boolean {
  return error instanceof GrpcError && (error.code === 'UNAVAILABLE' || (error.code === 'DEADLINE_EXCEEDED' && error.isUnsent))
}

/** Our own limit; the server's for requests has other words. */
const isLargeAnswer = ({ code, message }: GrpcError) => code === 'RESOURCE_EXHAUSTED' && message.startsWith('Received message larger than max')

/** The error that the store throws for one of a call. What etcd refuses for other reasons (permissions, bad requests) stays as it is. */
export function storeErrorOf(error: unknown, isWrite: boolean): unknown {
  if (!(error instanceof GrpcError)) return error
  // The write has been carried out; only its answer was refused.
  if (isLargeAnswer(error))
    return isWrite ? storeError('unknownOutcome', { cause: error }) : new Error(`etcd's answer is too large: ${error.message}`, { cause: error })
  const known = codes.find(([text]) => error.message.includes(text))
  if (known) return storeError(known[1], { cause: error })
  if (!uncertain.has(error.code)) return error
  return storeError(isWrite && !error.isUnsent ? 'unknownOutcome' : 'unavailable', { cause: error })
}
