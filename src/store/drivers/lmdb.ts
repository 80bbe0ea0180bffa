/** The embedded store (L2): one file, everything acknowledged is on the disk. */
import { type LmdbBackendOptions, openLmdbBackend } from '../local/backends/lmdb.ts'
import { createMvccStore, defaultMaxLogBytes } from '../local/mvccStore.ts'
import type { LocalStore } from '../store.ts'

export interface LmdbStoreOptions extends LmdbBackendOptions {
  /** Recent changes kept in memory for watchers that resume, in bytes of values. */
  readonly maxLogBytes?: number | undefined
  /** Puts are refused with 'noSpace' beyond this many bytes. */
  readonly quotaBytes?: number | undefined
}

/** Opens or creates the store in one file. @throws StoreError 'unavailable' when it cannot be opened. */
export async function openLmdbStore({ maxLogBytes = defaultMaxLogBytes, quotaBytes, ...options }: LmdbStoreOptions): Promise<LocalStore> {
  const { backend, state } = await openLmdbBackend(options)
  return createMvccStore(backend, state, { clock: options.clock, log: options.log, maxLogBytes, quotaBytes })
}
