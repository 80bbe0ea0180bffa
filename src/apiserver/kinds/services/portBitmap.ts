/**
 * The node ports of a range that are allocated, one bit each (L3, pure).
 * Upstream: pkg/registry/core/service/allocator/bitmap.go, portallocator/allocator.go (v1.36).
 */
import type { Random } from '#base/random'
import { staticBand } from './staticBand.ts'

/** Ports from `first`, `size` of them. */
export interface PortRange {
  readonly first: number
  readonly size: number
}

export type Claim = 'allocated' | 'taken' | 'outside'

/** The text of a range in messages and in the store. */
export function formatPortRange({ first, size }: PortRange): string {
  return `${first}-${first + size - 1}`
}

/** @throws Error for another text than formatPortRange makes */
export function parsePortRange(text: string): PortRange {
  const [, first = 0, last = 0] = (/^(\d{1,5})-(\d{1,5})$/.exec(text) ?? []).map(Number)
  if (last < first || last > 65_535 || first === 0) throw new Error(`invalid port range: ${text}`)
  return { first, size: last - first + 1 }
}

export class PortBitmap {
  readonly range: PortRange
  /** Bit `offset & 7` of byte `offset >> 3`. */
  readonly #bits: Uint8Array

  private constructor(range: PortRange, bits: Uint8Array) {
    this.range = range
    this.#bits = bits
  }

  static empty(range: PortRange): PortBitmap {
    return new PortBitmap(range, new Uint8Array((range.size + 7) >> 3))
  }

  /** From the bytes of a big-endian number, as Go's big.Int has them. Bits beyond the range are dropped. */
  static of(range: PortRange, data: Uint8Array): PortBitmap {
    const bitmap = PortBitmap.empty(range)
    const bits = bitmap.#bits
    for (let at = 0; at < bits.length; at++) bits[at] = data[data.length - 1 - at] ?? 0
    const spare = bits.length * 8 - range.size
    const last = bits.length - 1
    bits[last] = (bits[last] ?? 0) & (0xff >> spare)
    return bitmap
  }

  /** Without leading zero bytes. */
  toBytes(): Uint8Array {
    let length = this.#bits.length
    while (length > 0 && this.#bits[length - 1] === 0) length--
    return this.#bits.slice(0, length).reverse()
  }

  copy(): PortBitmap {
    return new PortBitmap(this.range, this.#bits.slice())
  }

  equals(other: PortBitmap): boolean {
    return this.range.first === other.range.first && this.range.size === other.range.size && Buffer.compare(this.#bits, other.#bits) === 0
  }

  has(port: number): boolean {
    return this.#contains(port) && this.#bit(port - this.range.first)
  }

  /** Takes this very port. */
  allocate(port: number): Claim {
    if (!this.#contains(port)) return 'outside'
    if (this.has(port)) return 'taken'
    this.#set(port - this.range.first)
    return 'allocated'
  }

  /** Takes any port, one of the static band only when the others are gone; undefined when all are taken. */
  allocateNext(random: Random): number | undefined {
    const { first, size } = this.range
    const dynamicFrom = staticBand(size, { step: 32, max: 128 })
    const offset = this.#freeIn(dynamicFrom, size, random) ?? this.#freeIn(0, dynamicFrom, random)
    if (offset === undefined) return undefined
    this.#set(offset)
    return first + offset
  }

  /** Does nothing for a port that is not allocated. */
  release(port: number): void {
    if (!this.has(port)) return
    const offset = port - this.range.first
    this.#bits[offset >> 3] = (this.#bits[offset >> 3] ?? 0) & ~(1 << (offset & 7))
  }

  *ports(): Iterable<number> {
    for (let offset = 0; offset < this.range.size; offset++) if (this.#bit(offset)) yield this.range.first + offset
  }

  #freeIn(from: number, to: number, random: Random): number | undefined {
    const span = to - from
    if (span <= 0) return undefined
    const start = random.int(span)
    for (let step = 0; step < span; step++) {
      const offset = from + ((start + step) % span)
      if (!this.#bit(offset)) return offset
    }
    return undefined
  }

  #contains(port: number): boolean {
    return port >= this.range.first && port < this.range.first + this.range.size
  }

  #bit(offset: number): boolean {
    return (((this.#bits[offset >> 3] ?? 0) >> (offset & 7)) & 1) === 1
  }

  #set(offset: number): void {
    this.#bits[offset >> 3] = (this.#bits[offset >> 3] ?? 0) | (1 << (offset & 7))
  }
}
