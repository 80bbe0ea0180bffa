/**
 * Bounds the memory of large objects in the histories of all watch caches (L3), in addition to the current state. A ring keeps its last thousand changes,
 * which is little if objects have some kilobytes, but gigabytes if a client keeps writing objects of a megabyte: beyond the budget the oldest replaced
 * versions are evicted. The changes stay in the ring: only a watcher that resumes before such a change, and needs its event, must list again.
 * Upstream only bounds the number of changes (watchCache capacity).
 */

const mostLargeBytes = 8 * 1024 * 1024

/** A change of a large object. */
export interface LargeChange {
  /** Bytes that it holds in addition to the current state. */
  readonly heldBytes: number
  /** Drops decoded forms, which history does not need. */
  dropDecoded(): void
  /** Drops the version that it holds in addition to the current state. */
  evict(): void
}

export class HistoryBudget {
  readonly #changes: { readonly bytes: number; evict(): void }[] = []
  #newest: LargeChange | undefined
  #bytes = 0
  readonly #mostBytes: number

  constructor(mostBytes = mostLargeBytes) {
    this.#mostBytes = mostBytes
  }

  /** Adds a large change; may evict older versions. */
  add(change: LargeChange): void {
    // Keep the newest change decoded: listeners are about to read it.
    this.#newest?.dropDecoded()
    this.#newest = change
    const { heldBytes: bytes } = change
    if (bytes === 0) return
    this.#changes.push({ bytes, evict: () => change.evict() })
    this.#bytes += bytes
    while (this.#bytes > this.#mostBytes && this.#changes.length > 1) {
      const oldest = this.#changes.shift()
      this.#bytes -= oldest?.bytes ?? 0
      oldest?.evict()
    }
  }
}
