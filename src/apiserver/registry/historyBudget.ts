/**
 * What the histories of all watch caches may hold in large objects (L3). A ring keeps its last thousand changes, which is nothing where objects have
 * some kilobytes, and gigabytes where a client writes objects of a megabyte again and again: beyond the budget the oldest large changes go first,
 * and a watcher that resumes from before them lists again. Upstream bounds the number of changes alone (watchCache capacity).
 */

const mostLargeBytes = 8 * 1024 * 1024

/** A history that holds large changes. */
export interface BoundedHistory {
  /** Forgets everything up to this revision. */
  forgetThrough(revision: number): void
}

interface LargeChange {
  readonly history: BoundedHistory
  readonly revision: number
  readonly bytes: number
  /** Keeps what history needs. */
  rest(): void
}

export class HistoryBudget {
  readonly #changes: LargeChange[] = []
  #bytes = 0
  readonly #mostBytes: number

  constructor(mostBytes = mostLargeBytes) {
    this.#mostBytes = mostBytes
  }

  /** Notes a large change; older ones may have to go. The last one stays, and stays whole: those who follow the changes are about to look at it. */
  add(history: BoundedHistory, change: Omit<LargeChange, 'history'>): void {
    this.#changes.at(-1)?.rest()
    const { revision, bytes } = change
    this.#changes.push({ history, revision, bytes, rest: () => change.rest() })
    this.#bytes += bytes
    while (this.#bytes > this.#mostBytes && this.#changes.length > 1) {
      const oldest = this.#changes.shift() as LargeChange
      this.#bytes -= oldest.bytes
      oldest.history.forgetThrough(oldest.revision)
    }
  }
}
