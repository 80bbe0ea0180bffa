/** The store in memory (L2): for tests and throw-away clusters. Nothing survives it. */
import type { Clock } from '#base/clock'
import { type Logger, noLog } from '#base/log'
import { defaultMaxLogBytes, MvccStore } from '../local/mvccStore.ts'
import type { LocalStore } from '../store.ts'

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
