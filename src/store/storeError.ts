/** The errors a store answers with (L2). The texts are etcd's, because clients of its API match on them. */
import type { Revision, StoreError } from './store.ts'

const messages: Readonly<Record<StoreError['code'], string>> = {
  compacted: 'mvcc: required revision has been compacted',
  futureRevision: 'mvcc: required revision is a future revision',
  leaseNotFound: 'requested lease not found',
  noSpace: 'mvcc: database space exceeded',
  tooLarge: 'etcdserver: request is too large',
  closed: 'the store is closed',
  unavailable: 'the store is unavailable',
  unknownOutcome: 'etcdserver: request timed out',
}

class StoreFailure extends Error implements StoreError {
  readonly code: StoreError['code']
  readonly revision: Revision | undefined

  constructor(code: StoreError['code'], options: { revision?: Revision | undefined; cause?: unknown }) {
    super(messages[code], options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'StoreError'
    this.code = code
    this.revision = options.revision
  }
}

/** Makes the error for `code`; `revision` is the compaction's, for 'compacted'. */
export function storeError(code: StoreError['code'], options: { revision?: Revision | undefined; cause?: unknown } = {}): StoreError {
  return new StoreFailure(code, options)
}

/** True when `error` came from a store, with the given code if one is named. */
export function isStoreError(error: unknown, code?: StoreError['code']): error is StoreError {
  return error instanceof StoreFailure && (code === undefined || error.code === code)
}
