/**
 * Which user may make which call (L2): each method has a rule, and one without is not served. Upstream: etcd server/etcdserver/apply/apply_auth.go,
 * server/etcdserver/v3_server.go, server/etcdserver/api/v3rpc (v3.6.16, which checks what a 3.6.8 forgets: leases, alarms, compactions, puts in transactions).
 */
import type { GrpcClient, ServiceImplementation, StreamCall } from '#grpc/grpcService'
import { leaseIdOf } from '../../leaseId.ts'
import type { LeaseId } from '../../store.ts'
import type { EtcdApi } from '../api.ts'
import type { GuardedService } from '../guardedService.ts'
import { type DeleteRangeRequest, keyOf, type PutRequest, type RangeRequest, type TxnRequest } from '../messages.ts'
import { checkOperationCount } from '../transactionRules.ts'
import type { AuthInfo } from './authStore.ts'

interface RuleContext {
  readonly api: EtcdApi
  /** Undefined: the client named no user. */
  readonly info: AuthInfo | undefined
}

/** Throws a GrpcRefusal when the user may not make the call. It runs only while users are needed. */
type Rule = (context: RuleContext, request: never) => void

const anybody: Rule = () => {}
const aUser: Rule = ({ api, info }) => api.auth.needUser(info)
const rootOnly: Rule = ({ api, info }) => api.auth.needRoot(info)

const rules: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  KV: { Range: mayRange, Put: mayPut, DeleteRange: mayDelete, Txn: mayTransact, Compact: rootOnly },
  Watch: { Watch: mayRange },
  Lease: { LeaseGrant: aUser, LeaseRevoke: mayRevoke, LeaseKeepAlive: mayRevoke, LeaseTimeToLive: mayLookAtLease, LeaseLeases: mayListLeases },
  Maintenance: {
    Alarm: ({ api, info }, { action }: { readonly action: string | number }) => (action === 'GET' ? api.auth.needUser(info) : api.auth.needRoot(info)),
    Status: aUser,
    Defragment: rootOnly,
    Hash: rootOnly,
    HashKV: rootOnly,
    Snapshot: rootOnly,
  },
  Cluster: { MemberList: aUser },
  Auth: {
    ...Object.fromEntries(
      ['AuthEnable', 'AuthDisable', 'AuthStatus']
        .concat(['UserAdd', 'UserList', 'UserDelete', 'UserChangePassword', 'UserGrantRole', 'UserRevokeRole'])
        .concat(['RoleAdd', 'RoleList', 'RoleDelete', 'RoleGrantPermission', 'RoleRevokePermission'])
        .map((name) => [name, rootOnly]),
    ),
    Authenticate: anybody,
    UserGet: ({ api, info }, { name }: { readonly name: string }) => {
      if (info?.user !== name) api.auth.needRoot(info)
    },
    RoleGet: ({ api, info }, { name }: { readonly name: string }) => {
      if (!api.auth.hasRole(info, name)) api.auth.needRoot(info)
    },
  },
}

const ruleByMethod: ReadonlyMap<string, Rule> = new Map(
  Object.entries(rules).flatMap(([service, methods]) => Object.entries(methods).map(([name, rule]) => [`${service}.${name}`, rule] as const)),
)

function mayRange({ api, info }: RuleContext, { key, rangeEnd }: Pick<RangeRequest, 'key' | 'rangeEnd'>): void {
  api.auth.needRead(info, keyOf(key), keyOf(rangeEnd))
}

function mayPut(context: RuleContext, request: PutRequest): void {
  mayPutWithoutLease(context, request)
  mayWriteKeysOf(context, request.lease)
}

function mayPutWithoutLease({ api, info }: RuleContext, { key, prevKv }: PutRequest): void {
  api.auth.needWrite(info, keyOf(key))
  if (prevKv) api.auth.needRead(info, keyOf(key))
}

function mayDelete({ api, info }: RuleContext, { key, rangeEnd, prevKv }: DeleteRangeRequest): void {
  api.auth.needWrite(info, keyOf(key), keyOf(rangeEnd))
  if (prevKv) api.auth.needRead(info, keyOf(key), keyOf(rangeEnd))
}

function mayTransact(context: RuleContext, request: TxnRequest): void {
  checkOperationCount(context.api, request)
  const leases = new Set<string>()
  mayOperate(context, request, leases)
  for (const lease of leases) mayWriteKeysOf(context, lease)
}

/** Everything but the leases of puts, which it collects. */
function mayOperate(context: RuleContext, { compare, success, failure }: TxnRequest, leases: Set<string>): void {
  for (const one of compare) mayRange(context, one)
  for (const { requestRange, requestPut, requestDeleteRange, requestTxn } of [...success, ...failure]) {
    if (requestRange) mayRange(context, requestRange)
    if (requestDeleteRange) mayDelete(context, requestDeleteRange)
    if (requestTxn) mayOperate(context, requestTxn, leases)
    if (!requestPut) continue
    mayPutWithoutLease(context, requestPut)
    leases.add(requestPut.lease)
  }
}

interface LeaseRequest {
  /** Decimal text. */
  readonly id: string
}

/** A lease ends with its keys: who may not write these may not end it, prolong it, or attach a key that would end with it. */
function mayWriteKeysOf({ api, info }: RuleContext, lease: string): void {
  if (api.auth.isRoot(info)) return
  for (const key of api.store.leaseKeys(leaseIdOf(lease))) api.auth.needWrite(info, key)
}

function mayRevoke(context: RuleContext, { id }: LeaseRequest): void {
  context.api.auth.needUser(context.info)
  mayWriteKeysOf(context, id)
}

function mayReadKeysOf({ api, info }: RuleContext, id: LeaseId): void {
  for (const key of api.store.leaseKeys(id)) api.auth.needRead(info, key)
}

function mayLookAtLease(context: RuleContext, { id, keys }: LeaseRequest & { readonly keys: boolean }): void {
  context.api.auth.needUser(context.info)
  if (keys && !context.api.auth.isRoot(context.info)) mayReadKeysOf(context, leaseIdOf(id))
}

function mayListLeases(context: RuleContext): void {
  context.api.auth.needUser(context.info)
  if (!context.api.auth.isRoot(context.info)) for (const id of context.api.store.leaseIds()) mayReadKeysOf(context, id)
}

/** The service with a check in front of each call. @throws Error for a method without a rule */
export function guarded(api: EtcdApi, service: string, { methods = {}, streams = {} }: GuardedService): Pick<ServiceImplementation, 'methods' | 'streams'> {
  const ruleOf = (name: string): Rule => {
    const rule = ruleByMethod.get(`${service}.${name}`)
    if (!rule) throw new Error(`no rule says which user may call ${service}.${name}`)
    return rule
  }
  return {
    methods: mapped(methods, (handle, name) => {
      const rule = ruleOf(name)
      return (request: never, client: GrpcClient) => {
        const info = infoOf(api, name, client)
        const permit = () => {
          if (api.auth.isEnabled) rule({ api, info }, request)
        }
        permit()
        return handle(request, permit)
      }
    }),
    streams: mapped(streams, (handle, name) => {
      const rule = ruleOf(name)
      const permit = (client: GrpcClient) => (request: object) => {
        if (api.auth.isEnabled) rule({ api, info: infoOf(api, name, client) }, request as never)
      }
      return (call: StreamCall<never>) => handle(call, permit(call.client))
    }),
  }
}

function mapped<From, To>(all: Readonly<Record<string, From>>, change: (one: From, name: string) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, change(one, name)]))
}

/** By the token, or by the name in the certificate. Calls of etcd's HTTP gateway have the gateway's own certificate. */
function infoOf({ auth, namesInCertificates }: EtcdApi, method: string, client: GrpcClient): AuthInfo | undefined {
  if (!auth.isEnabled || method === 'Authenticate') return undefined
  const token = client.metadata('token') ?? client.metadata('authorization')
  if (token !== undefined) return auth.infoOfToken(token.replace(/^Bearer /, ''))
  if (!namesInCertificates || client.metadata('grpcgateway-accept') !== undefined) return undefined
  const name = client.commonName()
  return name ? auth.infoOf(name) : undefined
}
