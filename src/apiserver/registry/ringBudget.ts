/**
 * Bounds the memory of the recent changes in all watch caches of a server (L3). Each cache bounds its changes by number and age; this bounds their
 * bytes, and keeps only the newest changes decoded. The largest history loses changes first, so that writes to one resource do not end the watches of
 * others. HistoryBudget does the same for large objects.
 * Upstream only bounds the number of changes (watchCache capacity).
 */

const mostRingBytes = 32 * 1024 * 1024
/** In bytes of stored values; the decoded objects take several times as much. */
const mostDecodedBytes = 2 * 1024 * 1024
/** Memory of a change without its objects. */
const changeBytes = 512
/** The places of changes that are no longer decoded are removed when there are this many. */
const mostPassed = 1024

/** A change in a cache's ring. */
export interface RingChange {
  /** Drops decoded objects and encoded events. */
  dropDecoded(): void
}

/** The history of one cache. */
export interface BudgetedRing {
  /** As the budget counted its changes. */
  readonly bytes: number
  readonly length: number
  /** Drops its oldest change, and releases the bytes. */
  forgetOldest(): void
}

export class RingBudget {
  /** Those that hold changes. */
  readonly #rings = new Set<BudgetedRing>()
  /** Changes in the order in which they were made; those before the head are no longer decoded. */
  #decoded: { readonly change: RingChange; readonly bytes: number }[] = []
  #head = 0
  #bytes = 0
  #decodedBytes = 0
  readonly #mostBytes: number
  readonly #mostDecodedBytes: number

  constructor(mostBytes = mostRingBytes, decodedBytes = mostDecodedBytes) {
    this.#mostBytes = mostBytes
    this.#mostDecodedBytes = decodedBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Changes that it knows of, for tests. */
  get places(): number {
    return this.#decoded.length
  }

  /** What a change counts that alone holds so many bytes of objects. */
  static bytesOf(heldBytes: number): number {
    return heldBytes + changeBytes
  }

  /** Counts a change that the ring has taken up; older changes of any ring may go. */
  add(ring: BudgetedRing, change: RingChange, bytes: number): void {
    this.#rings.add(ring)
    this.#bytes += bytes
    this.#decoded.push({ change, bytes })
    this.#decodedBytes += bytes
    while (this.#decodedBytes > this.#mostDecodedBytes && this.#head < this.#decoded.length - 1) this.#dropDecoded()
    while (this.#bytes > this.#mostBytes) {
      const largest = this.#largest()
      if (!largest) break
      largest.forgetOldest()
    }
  }

  /** Called when a ring has dropped a change. */
  release(ring: BudgetedRing, bytes: number): void {
    this.#bytes -= bytes
    if (ring.length === 0) this.#rings.delete(ring)
  }

  /** Among those with more than their newest change. */
  #largest(): BudgetedRing | undefined {
    let largest: BudgetedRing | undefined
    for (const ring of this.#rings) if (ring.length > 1 && ring.bytes > (largest?.bytes ?? 0)) largest = ring
    return largest
  }

  #dropDecoded(): void {
    const { bytes, change } = this.#decoded[this.#head++]!
    this.#decodedBytes -= bytes
    change.dropDecoded()
    if (this.#head < mostPassed) return
    this.#decoded = this.#decoded.slice(this.#head)
    this.#head = 0
  }
}
