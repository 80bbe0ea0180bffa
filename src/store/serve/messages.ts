/** etcd's messages, as src/grpc/protoMessage.ts decodes them, and keys and values in them (L2, pure). Upstream: etcd api/v3 etcdserverpb (v3.6). */
import type { KeyValue } from '../store.ts'

export interface RangeRequest {
  readonly key: Buffer
  readonly rangeEnd: Buffer
  readonly limit: number
  readonly revision: number
  readonly sortOrder: 'NONE' | 'ASCEND' | 'DESCEND' | number
  readonly sortTarget: 'KEY' | 'VERSION' | 'CREATE' | 'MOD' | 'VALUE' | number
  readonly keysOnly: boolean
  readonly countOnly: boolean
  readonly minModRevision: number
  readonly maxModRevision: number
  readonly minCreateRevision: number
  readonly maxCreateRevision: number
}

export interface PutRequest {
  readonly key: Buffer
  readonly value: Buffer
  /** Decimal text; '0': none. */
  readonly lease: string
  readonly prevKv: boolean
  readonly ignoreValue: boolean
  readonly ignoreLease: boolean
}

export interface DeleteRangeRequest {
  readonly key: Buffer
  readonly rangeEnd: Buffer
  readonly prevKv: boolean
}

export interface CompareMessage {
  readonly result: 'EQUAL' | 'GREATER' | 'LESS' | 'NOT_EQUAL' | number
  readonly target: 'VERSION' | 'CREATE' | 'MOD' | 'VALUE' | 'LEASE' | number
  readonly key: Buffer
  readonly rangeEnd: Buffer
  readonly version: number
  readonly createRevision: number
  readonly modRevision: number
  readonly value: Buffer
  readonly lease: string
}

export interface RequestOp {
  readonly requestRange: RangeRequest | null
  readonly requestPut: PutRequest | null
  readonly requestDeleteRange: DeleteRangeRequest | null
  readonly requestTxn: TxnRequest | null
}

export interface TxnRequest {
  readonly compare: readonly CompareMessage[]
  readonly success: readonly RequestOp[]
  readonly failure: readonly RequestOp[]
}

/** Keys are strings with one char per byte in the store. */
export const keyOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')

/** The end of a range: undefined for a single key, '\0' for all keys from the first on. */
export const endOf = (bytes: Uint8Array): string | undefined => (bytes.length === 0 ? undefined : keyOf(bytes))

/** A copy of request bytes that does not keep the whole request in memory. */
export const ownBytes = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes)

export function keyValueMessage({ key, value, createRevision, modRevision, version, lease }: KeyValue, keysOnly = false): object {
  return { key: Buffer.from(key, 'latin1'), createRevision, modRevision, version, lease, ...(keysOnly ? {} : { value }) }
}
