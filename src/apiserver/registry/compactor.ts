/**
 * Compacts the store every five minutes (L3): removes history older than five minutes. Pages and watches at older revisions get 410 and start over,
 * as upstream's clients expect.
 * Upstream: apiserver/pkg/storage/etcd3/compact.go.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Store, StoreError } from '#store/store'

/** Upstream's --etcd-compaction-interval. */
export const compactionIntervalMs = 300_000

export async function compactRegularly(deps: { store: Store; clock: Clock; log: Logger }, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = deps
  let before = 0
  while (!signal.aborted) {
    const revision = before
    try {
      before = await store.latestRevision()
      if (revision > 1) await store.compact(revision)
    } catch (error) {
      const { code } = error as StoreError
      // Another server compacted this revision, or the store is closing.
      if (code !== 'compacted' && code !== 'closed') log.error(error, 'Compacting the store failed', { revision })
    }
    await clock.sleep(compactionIntervalMs, signal).catch(() => undefined)
  }
}
