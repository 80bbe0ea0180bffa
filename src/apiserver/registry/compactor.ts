/**
 * Lets the store forget old history (L3): every five minutes, what is older than five minutes. Pages and watches that reach further back
 * get 410 and start over, as upstream's clients expect.
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
    const next = store.currentRevision()
    if (before > 1) {
      try {
        await store.compact(before)
      } catch (error) {
        // Another server did it, or the store is closing.
        const { code } = error as StoreError
        if (code !== 'compacted' && code !== 'closed') log.error(error, 'Compacting the store failed', { revision: before })
      }
    }
    before = next
    await clock.sleep(compactionIntervalMs, signal).catch(() => undefined)
  }
}
