/** Compacts a served store by age or by number of revisions (L2). Upstream: etcd server/etcdserver/api/v3compactor/{periodic,revision}.go (v3.6). */
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { LocalStore, Revision } from '../store.ts'

/** Keeps the history of `periodMs`, or the newest `revisions`. */
export type AutoCompaction = { readonly periodMs: number } | { readonly revisions: number }

export interface AutoCompactionDeps {
  readonly store: LocalStore
  readonly clock: Clock
  readonly log: Logger
}

const revisionCheckMs = 300_000
const longestPauseMs = 3_600_000

export function autoCompaction({ store, clock, log }: AutoCompactionDeps, kept: AutoCompaction): Component {
  const policy = 'periodMs' in kept ? byAge(kept.periodMs) : { pauseMs: revisionCheckMs, target: (_: number, newest: Revision) => newest - kept.revisions }
  return {
    name: 'compactor',
    async run(signal) {
      while (!signal.aborted) {
        const target = policy.target(clock.now(), store.latestRevision())
        if (target > store.compactRevision()) {
          await store.compact(target).then(
            () => log.info('Compacted', { revision: target }),
            (error: unknown) => log.error(error, 'The compaction failed; the next one is due after the usual time', { revision: target }),
          )
        }
        await clock.sleep(policy.pauseMs, signal).catch(() => {})
      }
    },
  }
}

/** Looks ten times in a period, at least once an hour. */
function byAge(periodMs: number) {
  const seen: { readonly atMs: number; readonly revision: Revision }[] = []
  return {
    pauseMs: Math.min(periodMs / 10, longestPauseMs),
    /** The newest revision that was current a period ago; 0: none is known. */
    target(nowMs: number, newest: Revision): Revision {
      seen.push({ atMs: nowMs, revision: newest })
      let target = 0
      while (seen[0] && seen[0].atMs <= nowMs - periodMs) target = seen.shift()?.revision ?? 0
      return target
    },
  }
}
