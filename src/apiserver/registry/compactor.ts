/**
 * Compacts the store (L3): at every interval, the history that is older than the interval, unless another server over the store has done so. Pages and
 * watches that reach further back get 410 and start over, as upstream's clients expect.
 * Upstream: apiserver/pkg/storage/etcd3/compact.go.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Store, StoreError } from '#store/store'
import { type CompactionTurn, lastTurn, nextTurn } from './compactionTurn.ts'
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

/**
 * The first turn comes an interval after the start; upstream's first turn only notes the revision, and its server compacts an interval later.
 * @param intervalMs 0: never compacts, as upstream
 */
export async function compactRegularly({ store, times, clock, log }: CompactorDeps, intervalMs: number, signal: AbortSignal): Promise<void> {
  if (intervalMs === 0) return
  let turn: CompactionTurn | undefined
  while (!signal.aborted) {
    try {
      turn = turn ? await nextTurn(store, turn) : await lastTurn(store)
      times.forgetBefore(turn.compacted)
      if (turn.isOwn && turn.compacted > 1) await store.compact(turn.compacted)
    } catch (error) {
      const { code } = error as StoreError
      // The revision is compacted already, such as by an administrator, or the store is closing.
      if (code !== 'compacted' && code !== 'closed') log.error(error, 'Compacting the store failed', { revision: turn?.compacted })
    }
    await clock.sleep(intervalMs, signal).catch(() => undefined)
  }
}
