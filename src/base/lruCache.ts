/**
 * A map of bounded size (L0) that drops what was used longest ago. For answers that are dear to work out and safe to forget.
 */
export class LruCache<K, V extends object> {
  readonly #entries = new Map<K, V>()
  readonly #capacity: number
  #newest: K | undefined

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#entries.size
  }

  /** What is kept, longest unused first. */
  values(): IterableIterator<V> {
    return this.#entries.values()
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key)
    // Most hits are on the key of the hit before: moving it again would change nothing.
    if (value !== undefined && key !== this.#newest) {
      this.#entries.delete(key)
      this.#entries.set(key, value)
      this.#newest = key
    }
    return value
  }

  set(key: K, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    this.#newest = key
    if (this.#entries.size > this.#capacity) this.#entries.delete(this.#entries.keys().next().value as K)
  }

  delete(key: K): boolean {
    if (key === this.#newest) this.#newest = undefined
    return this.#entries.delete(key)
  }
}
