/**
 * Finds known secret values in bytes (L4, pure): a table of the first three bytes of all values says at each position whether one may begin there, so that the
 * time grows with the bytes, and not with the number of values.
 */

export const replacement = '***'
/** Shorter values are words that occur everywhere. */
const leastBytes = 6
const tableBits = 16

export class KnownValues {
  readonly #table = new Uint8Array(1 << tableBits)
  /** By the slot of the table; the longest first, since one may begin with another. */
  readonly #bySlot = new Map<number, Buffer[]>()
  readonly #known = new Set<string>()

  get size(): number {
    return this.#known.size
  }

  add(value: string): void {
    const bytes = Buffer.from(value)
    if (bytes.length < leastBytes || this.#known.has(value)) return
    this.#known.add(value)
    const slot = slotOf(bytes[0] as number, bytes[1] as number, bytes[2] as number)
    this.#table[slot] = 1
    const there = this.#bySlot.get(slot) ?? []
    there.push(bytes)
    this.#bySlot.set(
      slot,
      there.toSorted((a, b) => b.length - a.length),
    )
  }

  isIn(bytes: Uint8Array): boolean {
    return this.#next(asBuffer(bytes), 0) !== undefined
  }

  /** The text with each known value replaced; the same text when there is none. */
  replace(text: string): string {
    if (this.#known.size === 0) return text
    const bytes = Buffer.from(text)
    const parts: Buffer[] = []
    let done = 0
    for (let found = this.#next(bytes, 0); found; found = this.#next(bytes, done)) {
      parts.push(bytes.subarray(done, found.at), Buffer.from(replacement))
      done = found.at + found.length
    }
    return done === 0 ? text : Buffer.concat([...parts, bytes.subarray(done)]).toString()
  }

  #next(bytes: Buffer, from: number): { readonly at: number; readonly length: number } | undefined {
    const table = this.#table
    for (let at = from; at < bytes.length - 2; at++) {
      const slot = slotOf(bytes[at] as number, bytes[at + 1] as number, bytes[at + 2] as number)
      if (table[slot] === 0) continue
      for (const value of this.#bySlot.get(slot) as Buffer[]) {
        if (at + value.length <= bytes.length && bytes.compare(value, 0, value.length, at, at + value.length) === 0) return { at, length: value.length }
      }
    }
    return undefined
  }
}

function slotOf(first: number, second: number, third: number): number {
  return (first ^ (second << 5) ^ (third << 9)) & ((1 << tableBits) - 1)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
