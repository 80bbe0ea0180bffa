/** The keys that a user may read or write (L2, pure): ranges that are merged, so that a request may reach across several. Upstream: etcd server/auth/range_perm_cache.go (v3.6). */

/** Ends are exclusive; `to` undefined: no end. */
interface KeyRange {
  readonly from: string
  to: string | undefined
}

/** @param rangeEnd empty: the key alone; '\0': all keys from it on */
function rangeOf(key: string, rangeEnd: string): KeyRange {
  if (rangeEnd === '') return { from: key, to: `${key}\0` }
  return { from: key, to: rangeEnd === '\0' ? undefined : rangeEnd }
}

const isBefore = (end: string | undefined, key: string) => end !== undefined && end < key

export class KeyRanges {
  readonly #merged: KeyRange[] = []

  constructor(ranges: readonly { readonly key: string; readonly rangeEnd: string }[]) {
    const sorted = ranges.map(({ key, rangeEnd }) => rangeOf(key, rangeEnd)).sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))
    for (const { from, to } of sorted) {
      const last = this.#merged.at(-1)
      if (!last || isBefore(last.to, from)) this.#merged.push({ from, to })
      else if (last.to !== undefined && (to === undefined || to > last.to)) last.to = to
    }
  }

  /** Whether every key of the range is in these ones. The parameters are as those of etcd's requests. */
  includes(key: string, rangeEnd: string): boolean {
    const { from, to } = rangeOf(key, rangeEnd)
    const own = this.#merged[this.#lastFrom(from)]
    if (!own) return false
    if (own.to === undefined) return true
    return from < own.to && to !== undefined && to <= own.to
  }

  /** The index of the last range that starts at the key or before it; -1: none does. */
  #lastFrom(key: string): number {
    let [low, high] = [0, this.#merged.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#merged[middle] as KeyRange).from <= key) low = middle + 1
      else high = middle
    }
    return low - 1
  }
}
