/** The store's operations in etcd's messages, and its answers (L2, pure). Upstream: etcd api/v3 etcdserverpb. */
import { leaseIdOf } from '../../leaseId.ts'
import type { Compare, KeyValue, Op, OpResult, RangeOptions, RangeResult, StoreEvent, Transaction, TransactionResult } from '../../store.ts'

/** Keys in etcd: those below `/registry` stand below another prefix there, where one is named. */
export interface KeyMapping {
  /** @param key may also be an end of a range */
  toEtcd(key: string): Buffer
  fromEtcd(key: Uint8Array): string
}

/** Whether a key of etcd is in a range of the store. */
export type RangeTest = (key: Uint8Array) => boolean

const ownPrefix = '/registry'

/** @param prefix as in --etcd-prefix, with or without a slash at its end */
export function keyMapping(prefix: string): KeyMapping {
  const bare = prefix.replace(/^\/+|\/+$/g, '')
  const theirs = bare === '' ? '' : `/${bare}`
  const isSame = theirs === ownPrefix
  // The character after the prefix decides: `/` in a key, `0` in the end of the range of all keys.
  const isBelow = (key: string, start: string) => key.startsWith(start) && (key[start.length] === '/' || key === `${start}0`)
  const move = (key: string, from: string, to: string) => (!isSame && isBelow(key, from) ? to + key.slice(from.length) : key)
  return {
    toEtcd: (key) => Buffer.from(move(key, ownPrefix, theirs), 'latin1'),
    fromEtcd: (key) => move(Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1'), theirs, ownPrefix),
  }
}

/**
 * Compares keys as they stand in etcd: there, keys of other programs may look like those of the store.
 * @param to as in a range of the store
 */
export function rangeTest(keys: KeyMapping, from: string, to: string | undefined): RangeTest {
  const first = keys.toEtcd(from)
  if (to === undefined) return (key) => first.equals(key)
  if (to === '\0') return (key) => first.compare(key) <= 0
  const end = keys.toEtcd(to)
  return (key) => first.compare(key) <= 0 && end.compare(key) > 0
}

/** etcd's messages, as src/grpc/protoMessage.ts decodes them. */
export interface EtcdHeader {
  /** Decimal. */
  readonly clusterId: string
  readonly memberId: number
  readonly revision: number
}

export interface StatusResponse {
  readonly header: EtcdHeader | null
  readonly version: string
  readonly dbSize: number
  readonly dbSizeInUse: number
  /** 0: there is none. */
  readonly leader: number
  readonly raftTerm: number
  readonly raftIndex: number
  readonly raftAppliedIndex: number
}

export interface EtcdKeyValue {
  readonly key: Buffer
  readonly value: Buffer
  readonly createRevision: number
  readonly modRevision: number
  readonly version: number
  /** Decimal. */
  readonly lease: string
}

export interface EtcdRangeResponse {
  readonly header: EtcdHeader | null
  readonly kvs: readonly EtcdKeyValue[]
  readonly more: boolean
  readonly count: number
}

interface EtcdResponse {
  readonly responseRange: EtcdRangeResponse | null
  readonly responsePut: object | null
  readonly responseDeleteRange: { readonly deleted: number } | null
}

export interface EtcdTransactionResponse {
  readonly header: EtcdHeader
  readonly succeeded: boolean
  readonly responses: readonly EtcdResponse[]
}

export interface EtcdEvent {
  readonly type: 'PUT' | 'DELETE'
  readonly kv: EtcdKeyValue
  readonly prevKv: EtcdKeyValue | null
}

const empty = new Uint8Array(0)

/** The value is copied: it would keep the whole answer that it came in. */
function keyValueOf(keys: KeyMapping, { key, value, createRevision, modRevision, version, lease }: EtcdKeyValue): KeyValue {
  return { key: keys.fromEtcd(key), value: value.length === 0 ? empty : new Uint8Array(value), createRevision, modRevision, version, lease: leaseIdOf(lease) }
}

/** The message RangeRequest; absent options are left out. */
export function rangeRequestOf(keys: KeyMapping, from: string, to: string | undefined, { revision, limit, countOnly, keysOnly }: RangeOptions = {}): object {
  return {
    key: keys.toEtcd(from),
    ...(to === undefined ? {} : { rangeEnd: keys.toEtcd(to) }),
    ...(revision === undefined ? {} : { revision }),
    ...(limit === undefined ? {} : { limit }),
    ...(countOnly ? { countOnly } : {}),
    ...(keysOnly ? { keysOnly } : {}),
  }
}

/** @param revision the store's, where the answer to a part of a transaction has no header */
export function rangeResultOf(keys: KeyMapping, { header, kvs, more, count }: EtcdRangeResponse, revision = 0): RangeResult {
  return { kvs: kvs.map((kv) => keyValueOf(keys, kv)), count, more, revision: header?.revision || revision }
}

const results: Readonly<Record<Compare['op'], string>> = { '=': 'EQUAL', '>': 'GREATER', '<': 'LESS', '!=': 'NOT_EQUAL' }
const members: Readonly<Record<Compare['target'], string>> = {
  version: 'version',
  create: 'createRevision',
  mod: 'modRevision',
  lease: 'lease',
  value: 'value',
}

/** The message TxnRequest of a transaction: its comparisons, and both lists of operations. */
export function transactionRequestOf(keys: KeyMapping, { compare, success, failure = [] }: Transaction): object {
  const operation = (op: Op) => {
    if (op.type === 'range') return { requestRange: rangeRequestOf(keys, op.from, op.to, op.options) }
    if (op.type === 'put') return { requestPut: { key: keys.toEtcd(op.key), value: op.value, ...(op.lease ? { lease: op.lease } : {}) } }
    return { requestDeleteRange: { key: keys.toEtcd(op.from), ...(op.to === undefined ? {} : { rangeEnd: keys.toEtcd(op.to) }) } }
  }
  return {
    compare: compare.map(({ key, to, target, op, value }) => ({
      key: keys.toEtcd(key),
      ...(to === undefined ? {} : { rangeEnd: keys.toEtcd(to) }),
      target: target.toUpperCase(),
      result: results[op],
      [members[target]]: value,
    })),
    success: success.map(operation),
    failure: failure.map(operation),
  }
}

/** The result of a TxnResponse; the ranges in it have its revision. */
export function transactionResultOf(keys: KeyMapping, { header, succeeded, responses }: EtcdTransactionResponse): TransactionResult {
  const result = ({ responseRange, responseDeleteRange }: EtcdResponse): OpResult => {
    if (responseRange) return { type: 'range', result: rangeResultOf(keys, responseRange, header.revision) }
    return responseDeleteRange ? { type: 'delete', deleted: responseDeleteRange.deleted } : { type: 'put' }
  }
  return { succeeded, responses: responses.map(result), revision: header.revision }
}

/** The event of a watch, with the previous version where the server sent it. */
export function storeEventOf(keys: KeyMapping, { type, kv, prevKv }: EtcdEvent): StoreEvent {
  return { type: type === 'DELETE' ? 'delete' : 'put', kv: keyValueOf(keys, kv), ...(prevKv ? { previous: keyValueOf(keys, prevKv) } : {}) }
}
