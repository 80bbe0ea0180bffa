/**
 * A map ordered by its string keys (L0, pure): two levels, a list of blocks of at most `blockSize` keys. It stands where etcd has a B-tree:
 * an insert moves at most one block, a range scan walks arrays, and counting a range adds block lengths. Lookups, which are most of all, go by hash.
 */
const blockSize = 256

interface Block<V> {
  readonly keys: string[]
  readonly values: V[]
}

export class SortedMap<V> {
  readonly #blocks: Block<V>[] = []
  readonly #byKey = new Map<string, V>()

  get size(): number {
    return this.#byKey.size
  }

  get(key: string): V | undefined {
    return this.#byKey.get(key)
  }

  /** Returns what was there before. */
  set(key: string, value: V): V | undefined {
    this.#byKey.set(key, value)
    if (this.#isBehindAll(key)) {
      this.#append(key, value)
      return undefined
    }
    const at = this.#blockOf(key)
    const block = this.#blocks[at] as Block<V>
    const i = lowerBound(block.keys, key)
    if (block.keys[i] === key) {
      const before = block.values[i]
      block.values[i] = value
      return before
    }
    block.keys.splice(i, 0, key)
    block.values.splice(i, 0, value)
    if (block.keys.length > blockSize) this.#split(at, block, i)
    return undefined
  }

  #isBehindAll(key: string): boolean {
    const last = this.#blocks.at(-1)
    return !last || (last.keys[last.keys.length - 1] as string) < key
  }

  /** Keys that come in order, as when a store is loaded, are not searched for. */
  #append(key: string, value: V): void {
    let last = this.#blocks.at(-1)
    if (!last || last.keys.length >= blockSize) {
      last = { keys: [], values: [] }
      this.#blocks.push(last)
    }
    last.keys.push(key)
    last.values.push(value)
  }

  /** Returns what was removed. */
  delete(key: string): V | undefined {
    if (!this.#byKey.delete(key)) return undefined
    const at = this.#blockOf(key)
    const block = this.#blocks[at] as Block<V>
    const i = lowerBound(block.keys, key)
    block.keys.splice(i, 1)
    const [before] = block.values.splice(i, 1)
    if (block.keys.length === 0) this.#blocks.splice(at, 1)
    return before
  }

  /** Visits [from, to) in order until `visit` returns false; `to` undefined means no upper end. The map must not change meanwhile. */
  scan(from: string, to: string | undefined, visit: (key: string, value: V) => boolean | undefined): void {
    for (let at = this.#blockOf(from), first = true; at < this.#blocks.length; at++, first = false) {
      const { keys, values } = this.#blocks[at] as Block<V>
      for (let i = first ? lowerBound(keys, from) : 0; i < keys.length; i++) {
        const key = keys[i] as string
        if (to !== undefined && key >= to) return
        if (visit(key, values[i] as V) === false) return
      }
    }
  }

  /** Values of the keys in [from, to), in order; `to` undefined means no upper end. The map must not change while one iterates. */
  *range(from = '', to?: string): Generator<V> {
    for (let at = this.#blockOf(from), first = true; at < this.#blocks.length; at++, first = false) {
      const { keys, values } = this.#blocks[at] as Block<V>
      for (let i = first ? lowerBound(keys, from) : 0; i < keys.length; i++) {
        if (to !== undefined && (keys[i] as string) >= to) return
        yield values[i] as V
      }
    }
  }

  /** How many keys [from, to) holds, without visiting them. */
  count(from = '', to?: string): number {
    const first = this.#blockOf(from)
    const firstBlock = this.#blocks[first]
    if (!firstBlock || (to !== undefined && to <= from)) return 0
    const last = to === undefined ? this.#blocks.length : this.#blockOf(to)
    let count = -lowerBound(firstBlock.keys, from)
    for (let at = first; at < last; at++) count += (this.#blocks[at] as Block<V>).keys.length
    const lastBlock = this.#blocks[last]
    return to !== undefined && lastBlock ? count + lowerBound(lastBlock.keys, to) : count
  }

  /** The first block whose last key is not below `key`; blocks.length when all are below. */
  #blockOf(key: string): number {
    let low = 0
    let high = this.#blocks.length
    while (low < high) {
      const middle = (low + high) >> 1
      const keys = (this.#blocks[middle] as Block<V>).keys
      if ((keys[keys.length - 1] as string) < key) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Halves a full block; a block that grew at its very end keeps nearly all, so that ascending inserts leave full blocks behind. */
  #split(at: number, block: Block<V>, inserted: number): void {
    const cut = inserted === block.keys.length - 1 ? blockSize - 8 : block.keys.length >> 1
    this.#blocks.splice(at + 1, 0, { keys: block.keys.splice(cut), values: block.values.splice(cut) })
  }
}

function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((keys[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}
