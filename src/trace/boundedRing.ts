/** A list of bounded count and bytes (L2) that drops its oldest entries. */

interface Kept<T> {
  readonly value: T
  readonly bytes: number
}

export class BoundedRing<T> {
  #entries: Kept<T>[] = []
  /** Entries before it are dropped; they are cut off when they are half of the array. */
  #first = 0
  #bytes = 0
  readonly #mostCount: number
  readonly #mostBytes: number

  constructor(mostCount: number, mostBytes: number) {
    this.#mostCount = mostCount
    this.#mostBytes = mostBytes
  }

  get size(): number {
    return this.#entries.length - this.#first
  }

  get bytes(): number {
    return this.#bytes
  }

  /** An entry larger than the whole ring is not kept. */
  push(value: T, bytes: number): void {
    if (bytes > this.#mostBytes) return
    this.#entries.push({ value, bytes })
    this.#bytes += bytes
    while (this.size > this.#mostCount || this.#bytes > this.#mostBytes) this.dropOldest()
  }

  /** The newest first. */
  *newest(): Generator<T> {
    for (let at = this.#entries.length - 1; at >= this.#first; at--) yield (this.#entries[at] as Kept<T>).value
  }

  /** The ring must hold an entry. @returns its bytes */
  dropOldest(): number {
    const { bytes } = this.#entries[this.#first] as Kept<T>
    this.#bytes -= bytes
    this.#first++
    if (this.#first * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first)
      this.#first = 0
    }
    return bytes
  }
}
