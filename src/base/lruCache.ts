/**
 * A map of bounded size (L0) that drops what was used longest ago. For answers that are dear to work out and safe to forget.
 */
export class LruCache<K, V extends object> {
  readonly #entries = new Map<K, V>()
  readonly #capacity: number
  #newest: K | undefined
  /** Stands before the key that was used longest ago: a new look each time would pass over all gaps that keys left at the map's beginning. */
  #oldest: Iterator<K> | undefined
  /** Keys that were put at the end since. An iterator keeps every table alive that the map has outgrown meanwhile, so none gets old. */
  #moved = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#entries.size
  }

  /** Entries, least recently used first. */
  values(): IterableIterator<V> {
    return this.#entries.values()
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key)
    // Most hits are on the key of the hit before: moving it again would change nothing.
    if (value !== undefined && key !== this.#newest) {
      this.#entries.delete(key)
      this.#append(key, value)
    }
    return value
  }

  set(key: K, value: V): void {
    this.#entries.delete(key)
    this.#append(key, value)
    if (this.#entries.size > this.#capacity) this.#dropOldest()
  }

  #append(key: K, value: V): void {
    this.#entries.set(key, value)
    this.#newest = key
    if (this.#moved++ < this.#capacity) return
    this.#moved = 0
    this.#oldest = undefined
  }

  #dropOldest(): void {
    this.#oldest ??= this.#entries.keys()
    this.#entries.delete(this.#oldest.next().value as K)
  }

  delete(key: K): boolean {
    if (key === this.#newest) this.#newest = undefined
    return this.#entries.delete(key)
  }
}
