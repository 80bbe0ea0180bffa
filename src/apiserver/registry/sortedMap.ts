/**
 * A map ordered by its string keys (L3), for the watch cache: point reads, range reads and changes in O(log n) plus a short copy.
 * Keys and values lie in chunks of at most 512, so that an insert moves a few hundred pointers however large the map is.
 */
const maxChunk = 512

interface Chunk<V> {
  readonly keys: string[]
  readonly values: V[]
}

export class SortedMap<V> {
  #chunks: Chunk<V>[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  get(key: string): V | undefined {
    const chunk = this.#chunks[this.#chunkFor(key)]
    if (!chunk) return undefined
    const at = lowerBound(chunk.keys, key)
    return chunk.keys[at] === key ? chunk.values[at] : undefined
  }

  /** Returns what was there before. */
  set(key: string, value: V): V | undefined {
    const index = this.#chunkFor(key)
    const chunk = this.#chunks[index]
    if (!chunk) {
      this.#chunks.push({ keys: [key], values: [value] })
      this.#size = 1
      return undefined
    }
    const at = lowerBound(chunk.keys, key)
    if (chunk.keys[at] === key) {
      const before = chunk.values[at]
      chunk.values[at] = value
      return before
    }
    chunk.keys.splice(at, 0, key)
    chunk.values.splice(at, 0, value)
    this.#size++
    if (chunk.keys.length > maxChunk) {
      const half = chunk.keys.length >> 1
      this.#chunks.splice(index + 1, 0, { keys: chunk.keys.splice(half), values: chunk.values.splice(half) })
    }
    return undefined
  }

  /** Returns what was removed. */
  delete(key: string): V | undefined {
    const index = this.#chunkFor(key)
    const chunk = this.#chunks[index]
    if (!chunk) return undefined
    const at = lowerBound(chunk.keys, key)
    if (chunk.keys[at] !== key) return undefined
    const [before] = chunk.values.splice(at, 1)
    chunk.keys.splice(at, 1)
    this.#size--
    if (chunk.keys.length === 0) this.#chunks.splice(index, 1)
    return before
  }

  /** Values of the keys in [from, to), in order; `to` absent: to the end. Do not change the map while iterating. */
  *range(from = '', to?: string): Generator<V> {
    for (let index = this.#chunkFor(from); index < this.#chunks.length; index++) {
      const { keys, values } = this.#chunks[index]!
      for (let at = lowerBound(keys, from); at < keys.length; at++) {
        if (to !== undefined && keys[at]! >= to) return
        yield values[at]!
      }
    }
  }

  /** How many keys lie in [from, to). */
  count(from = '', to?: string): number {
    let count = 0
    for (let index = this.#chunkFor(from); index < this.#chunks.length; index++) {
      const { keys } = this.#chunks[index]!
      if (to !== undefined && keys[0]! >= to) break
      count += (to === undefined ? keys.length : lowerBound(keys, to)) - lowerBound(keys, from)
    }
    return count
  }

  clear(): void {
    this.#chunks = []
    this.#size = 0
  }

  /** The last chunk whose first key is not greater than `key`; the first chunk for smaller keys. */
  #chunkFor(key: string): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#chunks[middle]!.keys[0]! <= key) low = middle
      else high = middle - 1
    }
    return low
  }
}

function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return low
}
