/**
 * Finds the watchers of a key (L2, pure): single keys by hash, ranges sorted by their start with the running maximum of their ends,
 * so that an event meets only the watchers around it however many there are.
 */
interface Range<W> {
  readonly from: string
  /** Undefined: no upper end. */
  readonly to: string | undefined
  readonly watcher: W
}

export class WatcherIndex<W> {
  readonly #byKey = new Map<string, Set<W>>()
  readonly #ranges: Range<W>[] = []
  /** For each range, the largest end of it and all before it; undefined: no upper end. */
  #maxEnds: (string | undefined)[] = []

  addKey(key: string, watcher: W): void {
    const watchers = this.#byKey.get(key)
    if (watchers) watchers.add(watcher)
    else this.#byKey.set(key, new Set([watcher]))
  }

  addRange(from: string, to: string | undefined, watcher: W): void {
    this.#ranges.splice(this.#upTo(from), 0, { from, to, watcher })
    this.#recountEnds()
  }

  removeKey(key: string, watcher: W): void {
    const watchers = this.#byKey.get(key)
    if (watchers?.delete(watcher) && watchers.size === 0) this.#byKey.delete(key)
  }

  removeRange(watcher: W): void {
    const i = this.#ranges.findIndex((range) => range.watcher === watcher)
    if (i < 0) return
    this.#ranges.splice(i, 1)
    this.#recountEnds()
  }

  /** Calls `visit` once for each watcher of `key`. */
  forKey(key: string, visit: (watcher: W) => void): void {
    for (const watcher of this.#byKey.get(key) ?? []) visit(watcher)
    for (let i = this.#upTo(key) - 1; i >= 0; i--) {
      const maxEnd = this.#maxEnds[i]
      if (maxEnd !== undefined && maxEnd <= key) return
      const range = this.#ranges[i] as Range<W>
      if (range.to === undefined || range.to > key) visit(range.watcher)
    }
  }

  /** How many ranges start at or before `key`. */
  #upTo(key: string): number {
    let low = 0
    let high = this.#ranges.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#ranges[middle] as Range<W>).from <= key) low = middle + 1
      else high = middle
    }
    return low
  }

  #recountEnds(): void {
    let max: string | undefined = ''
    this.#maxEnds = this.#ranges.map(({ to }) => {
      if (max !== undefined) max = to === undefined || to > max ? to : max
      return max
    })
  }
}
