/**
 * Compacts the store (L3): at every interval, the history that is older than the interval. Pages and watches that reach further back
 * get 410 and start over, as upstream's clients expect.
 * Upstream: apiserver/pkg/storage/etcd3/compact.go.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Store, StoreError } from '#store/store'
import type { RevisionTimes } from './revisionTimes.ts'

/** Default of --etcd-compaction-interval. */
export const defaultCompactionIntervalMs = 300_000

export interface CompactorDeps {
  readonly store: Store
  /** Forgets the times of compacted revisions. */
  readonly times: RevisionTimes
  readonly clock: Clock
  readonly log: Logger
}

/** @param intervalMs 0: never compacts, as upstream */
export async function compactRegularly({ store, times, clock, log }: CompactorDeps, intervalMs: number, signal: AbortSignal): Promise<void> {
  if (intervalMs === 0) return
  let before = 0
  while (!signal.aborted) {
    const revision = before
    try {
      before = await store.latestRevision()
      times.forgetBefore(revision)
      if (revision > 1) await store.compact(revision)
    } catch (error) {
      const { code } = error as StoreError
      // Another server compacted this revision, or the store is closing.
      if (code !== 'compacted' && code !== 'closed') log.error(error, 'Compacting the store failed', { revision })
    }
    await clock.sleep(intervalMs, signal).catch(() => undefined)
  }
}
