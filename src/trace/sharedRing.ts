/** What several owners share (L2): bounded in count and bytes together. When it is full, the owner who holds most loses its oldest entry. */
import { BoundedRing } from './boundedRing.ts'

export class SharedRing<T> {
  readonly #rings = new Map<string, BoundedRing<T>>()
  readonly #mostCount: number
  readonly #mostBytes: number
  #count = 0
  #bytes = 0

  constructor(mostCount: number, mostBytes: number) {
    this.#mostCount = mostCount
    this.#mostBytes = mostBytes
  }

  /** An entry larger than the whole ring is not kept. */
  push(owner: string, value: T, bytes: number): void {
    if (bytes > this.#mostBytes) return
    const ring = this.#rings.get(owner) ?? new BoundedRing<T>(this.#mostCount + 1, this.#mostBytes * 2)
    this.#rings.set(owner, ring)
    ring.push(value, bytes)
    this.#count++
    this.#bytes += bytes
    while (this.#count > this.#mostCount || this.#bytes > this.#mostBytes) this.#dropOne()
  }

  /** The newest of each owner first. */
  *newest(): Generator<T> {
    for (const ring of this.#rings.values()) yield* ring.newest()
  }

  #dropOne(): void {
    let [most, largest]: [string, BoundedRing<T> | undefined] = ['', undefined]
    for (const [owner, ring] of this.#rings) if (!largest || ring.bytes > largest.bytes) [most, largest] = [owner, ring]
    if (!largest) return
    this.#bytes -= largest.dropOldest()
    this.#count--
    if (largest.size === 0) this.#rings.delete(most)
  }
}
