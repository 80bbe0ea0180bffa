/** The store in memory (L2): for tests and throw-away clusters. Nothing survives it. */
import type { Clock } from '#base/clock'
import { type Logger, noLog } from '#base/log'
import type { Version } from '../local/mvcc/keyHistory.ts'
import { createMvccStore, defaultMaxLogBytes, MvccStore, type MvccStoreOptions } from '../local/mvccStore.ts'
import type { LocalStore, Revision, StoredChange } from '../store.ts'
import { storeError } from '../storeError.ts'

export interface MemoryStoreOptions {
  readonly clock: Clock
  readonly log?: Logger | undefined
  readonly maxLogBytes?: number | undefined
  readonly quotaBytes?: number | undefined
}

/** An empty store at revision 1. Values handed to it must not be changed afterwards: it keeps them as they are. */
export function createMemoryStore(options: MemoryStoreOptions): LocalStore {
  const nothing = async () => {}
  return new MvccStore(
    { append: nothing, forget: nothing, close: nothing },
    { clock: options.clock, log: options.log ?? noLog, maxLogBytes: options.maxLogBytes ?? defaultMaxLogBytes, quotaBytes: options.quotaBytes },
  )
}

/** A store that holds what a snapshot does, and takes no writes. @param changes in order */
export function createStillStore(
  changes: readonly StoredChange[],
  compactRevision: Revision,
  options: Pick<MvccStoreOptions, 'clock' | 'log'>,
): Promise<LocalStore> {
  const backend = { append: () => Promise.reject(storeError('unavailable')), forget: async () => {}, close: async () => {} }
  return createMvccStore(backend, { versions: versionsOf(changes), leases: [], compactRevision, auth: [] }, { ...options, maxLogBytes: defaultMaxLogBytes })
}

function* versionsOf(changes: Iterable<StoredChange>): Generator<Version> {
  for (const { key, value, createRevision, modRevision, version, lease, sub } of changes)
    yield { key, modRevision, sub, createRevision, version, lease, bytes: key.length + value.length, value }
}
