/**
 * The order in which a node removes directories of volumes (L3, pure): each gets slices of time, and the next slice is for the removal that had the least so
 * far, so that a large directory does not hold back small ones. A removal that fails, or whose volume is in use, waits longer after each attempt.
 */
import { least } from '#base/extremes'
export type RemovalOutcome = 'removed' | 'unfinished' | 'inUse' | 'failed'

interface Removal {
  state: 'waiting' | 'underWay' | 'removed'
  /** All slices together. */
  spentMs: number
  /** No slice before that. */
  dueMs: number
  retryMs: number
  /** The failure is known. */
  hasFailed: boolean
}

const retry = { firstMs: 1_000, mostMs: 60_000 }
/** A volume that is still wanted so long after the report was not reported, or is asked for again. */
const confirmMs = 10_000

export class RemovalQueue {
  readonly #removals = new Map<string, Removal>()

  /** Sets the volumes whose removal is wanted. Others are forgotten, those under way when their slice ends. */
  want(names: ReadonlySet<string>): void {
    for (const [name, { state }] of this.#removals) if (!names.has(name) && state !== 'underWay') this.#removals.delete(name)
    for (const name of names) {
      if (!this.#removals.has(name)) this.#removals.set(name, { state: 'waiting', spentMs: 0, dueMs: 0, retryMs: retry.firstMs, hasFailed: false })
    }
  }

  /** The volume that gets the next slice; undefined: none is due. Every take needs its {@link put}. */
  take(nowMs: number): string | undefined {
    let next: [name: string, removal: Removal] | undefined
    for (const [name, removal] of this.#removals) {
      if (removal.state !== 'waiting' || removal.dueMs > nowMs) continue
      if (!next || removal.spentMs < next[1].spentMs) next = [name, removal]
    }
    if (next) next[1].state = 'underWay'
    return next?.[0]
  }

  /** @returns whether this is the first failure in a row: a slice whose time is over does not end the row */
  put(name: string, outcome: RemovalOutcome, tookMs: number, nowMs: number): boolean {
    const removal = this.#removals.get(name)
    if (!removal) return false
    removal.state = outcome === 'removed' ? 'removed' : 'waiting'
    if (outcome === 'unfinished' || outcome === 'removed') {
      // Even a slice that took no time counts, so that the others come first.
      removal.spentMs += Math.max(1, tookMs)
    } else {
      removal.dueMs = nowMs + removal.retryMs
      removal.retryMs = Math.min(removal.retryMs * 2, retry.mostMs)
    }
    const isFirst = outcome === 'failed' && !removal.hasFailed
    if (outcome !== 'unfinished') removal.hasFailed = outcome === 'failed'
    return isFirst
  }

  /** Volumes that are removed and not reported yet. */
  unreported(): string[] {
    return [...this.#removals].flatMap(([name, { state }]) => (state === 'removed' ? [name] : []))
  }

  reported(names: readonly string[], nowMs: number): void {
    for (const name of names) {
      const removal = this.#removals.get(name)
      if (removal) Object.assign(removal, { state: 'waiting', dueMs: nowMs + confirmMs })
    }
  }

  /** When the next removal is due that waits; undefined: none waits. */
  nextDueMs(): number | undefined {
    const due = [...this.#removals.values()].filter(({ state }) => state === 'waiting').map(({ dueMs }) => dueMs)
    return due.length === 0 ? undefined : least(due)
  }
}
