/**
 * The pool that services take node ports from (L3). Used ports are read from the watch cache, so that every API server over one store
 * agrees; what a write is about to use is reserved until the cache has it.
 * Upstream: pkg/registry/core/service/portallocator.
 */
import type { Random } from '#base/random'

/** Numbers from `first`, `size` of them. */
export interface PoolRange {
  readonly first: number
  readonly size: number
}

export type Claim = 'free' | 'taken' | 'outside'

export class PortPool {
  readonly range: PoolRange
  /** Numbers below `first + dynamicFrom` are taken dynamically only when the others are gone: static choices go there. */
  readonly #dynamicFrom: number
  readonly #inUse = new Map<number, number>()
  readonly #reserved = new Map<number, number>()
  readonly #random: Random

  constructor(range: PoolRange, random: Random) {
    this.range = range
    this.#dynamicFrom = staticBand(range.size, 128)
    this.#random = random
  }

  /** Counts what the cache shows. */
  use(value: number): void {
    this.#inUse.set(value, (this.#inUse.get(value) ?? 0) + 1)
  }

  free(value: number): void {
    decrement(this.#inUse, value)
  }

  check(value: number): Claim {
    if (value < this.range.first || value >= this.range.first + this.range.size) return 'outside'
    return this.#inUse.has(value) || this.#reserved.has(value) ? 'taken' : 'free'
  }

  reserve(value: number): void {
    this.#reserved.set(value, (this.#reserved.get(value) ?? 0) + 1)
  }

  release(value: number): void {
    decrement(this.#reserved, value)
  }

  /** A free number, reserved for the caller; undefined when all are taken. */
  next(): number | undefined {
    const { size } = this.range
    return this.#nextIn(this.#dynamicFrom, size) ?? this.#nextIn(0, this.#dynamicFrom)
  }

  #nextIn(from: number, to: number): number | undefined {
    const span = to - from
    if (span <= 0) return undefined
    const start = this.#random.int(span)
    for (let step = 0; step < span; step++) {
      const value = this.range.first + from + ((start + step) % span)
      if (this.check(value) !== 'free') continue
      this.reserve(value)
      return value
    }
    return undefined
  }
}

/** How many numbers at the start are for static choices: min(max(16, size/16), max), none in a range that is too small. */
export function staticBand(size: number, max: number): number {
  const band = Math.min(Math.max(16, Math.floor(size / 16)), max)
  return band >= size ? 0 : band
}

function decrement(counts: Map<number, number>, value: number): void {
  const count = counts.get(value) ?? 0
  if (count <= 1) counts.delete(value)
  else counts.set(value, count - 1)
}
