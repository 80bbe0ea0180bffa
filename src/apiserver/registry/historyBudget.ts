/**
 * What the histories of all watch caches may hold in large objects (L3), in addition to the current state. A ring keeps its last thousand changes,
 * which is nothing where objects have some kilobytes, and gigabytes where a client writes objects of a megabyte again and again: beyond the budget the
 * oldest replaced versions are evicted. The changes stay in the ring: only a watcher that resumes from before such a change, and would have to be
 * shown it, lists again. Upstream bounds the number of changes alone (watchCache capacity).
 */

const mostLargeBytes = 8 * 1024 * 1024

/** A change of a large object. */
export interface LargeChange {
  /** What it holds in addition to the current state. */
  readonly heldBytes: number
  /** Keeps what history needs. */
  dropDecoded(): void
  /** Takes away what it holds in addition to the current state. */
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

  /** Notes a large change; older versions may have to go. */
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
