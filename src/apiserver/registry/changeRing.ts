/**
 * The recent changes of one watch cache, oldest first (L3), from which watches resume. Bounded by number and age here, by bytes in RingBudget.
 * Upstream: the cyclic buffer of apiserver/pkg/storage/cacher watchCache.
 */
import type { CacheEntry } from '../core/watch/cacheEntry.ts'
import type { CacheChange } from '../core/watch/watchEvent.ts'
import { type BudgetedRing, RingBudget } from './ringBudget.ts'

/**
 * Changes younger than this stay in the ring (upstream's eventFreshDuration), up to the maximum number and the bytes of all rings; older ones beyond the
 * minimum number go.
 */
const freshMs = 75_000
const leastChanges = 1024
const mostChanges = 100_000

interface Held {
  readonly change: CacheChange
  /** As the budget counts it. */
  readonly bytes: number
}

export class ChangeRing implements BudgetedRing {
  #held: Held[] = []
  /** Index of the oldest change still held. */
  #head = 0
  #floor = 0
  #bytes = 0
  readonly #budget: RingBudget

  constructor(budget: RingBudget) {
    this.#budget = budget
  }

  /** History is complete after this revision. */
  get floor(): number {
    return this.#floor
  }

  get bytes(): number {
    return this.#bytes
  }

  get length(): number {
    return this.#held.length - this.#head
  }

  /** Drops all changes; history begins after `revision`. */
  startAfter(revision: number): void {
    while (this.length > 0) this.forgetOldest()
    this.#held = []
    this.#head = 0
    this.#floor = revision
  }

  add(change: CacheChange, nowMs: number): void {
    // The versions of large objects are counted by the budget for them.
    const bytes = RingBudget.bytesOf(change.isLarge ? 0 : change.heldBytes)
    this.#held.push({ change, bytes })
    this.#bytes += bytes
    this.#budget.add(this, change, bytes)
    for (;;) {
      const { length } = this
      const oldest = this.#held[this.#head]!.change
      if (length <= leastChanges || (length <= mostChanges && nowMs - oldest.atMs < freshMs)) break
      this.forgetOldest()
    }
    if (this.#head > leastChanges) this.#shrink()
  }

  /** The kept changes that are newer than the revision. */
  *after(revision: number): Generator<CacheChange> {
    let from = this.#head
    let to = this.#held.length
    while (from < to) {
      const middle = (from + to) >> 1
      if (this.#held[middle]!.change.revision > revision) to = middle
      else from = middle + 1
    }
    for (let at = from; at < this.#held.length; at++) yield this.#held[at]!.change
  }

  /** Evicts a replaced version from the change that made it. */
  evict(entry: CacheEntry): void {
    for (const change of this.after(entry.resourceVersion - 1)) {
      if (change.revision > entry.resourceVersion) return
      if (change.holds(entry)) change.evictEntry()
    }
  }

  forgetOldest(): void {
    const { change, bytes } = this.#held[this.#head++]!
    this.#floor = change.revision
    change.forget()
    this.#bytes -= bytes
    this.#budget.release(this, bytes)
  }

  #shrink(): void {
    if (this.#head * 2 <= this.#held.length) return
    this.#held = this.#held.slice(this.#head)
    this.#head = 0
  }
}
