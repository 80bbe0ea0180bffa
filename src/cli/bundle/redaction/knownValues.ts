/**
 * Finds known secret values in bytes (L4, pure). The values are sorted: at each position where one may begin, as a table of the first three bytes says, a binary
 * search finds the longest one that stands there. The time grows with the bytes, and hardly with the number of values, whatever they have in common.
 */

export const replacement = '***'
/** Shorter values are words that occur everywhere. */
const leastBytes = 6
const tableBits = 16

export class KnownValues {
  readonly #table = new Uint8Array(1 << tableBits)
  readonly #known = new Set<string>()
  #sorted: SortedValues | undefined

  get size(): number {
    return this.#known.size
  }

  add(value: string): void {
    const bytes = Buffer.from(value)
    if (bytes.length < leastBytes || this.#known.has(value)) return
    this.#known.add(value)
    this.#table[slotOf(bytes[0] as number, bytes[1] as number, bytes[2] as number)] = 1
    this.#sorted = undefined
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
    this.#sorted ??= new SortedValues([...this.#known])
    const table = this.#table
    for (let at = from; at < bytes.length - 2; at++) {
      if (table[slotOf(bytes[at] as number, bytes[at + 1] as number, bytes[at + 2] as number)] === 0) continue
      const length = this.#sorted.longestAt(bytes, at)
      if (length > 0) return { at, length }
    }
    return undefined
  }
}

/** Values in the order of their bytes, each with the longest other value that it begins with, as a tree. */
class SortedValues {
  readonly #values: readonly Buffer[]
  /** The index of the longest value that this one begins with; itself when there is none. */
  readonly #parents: Int32Array
  /** A distant ancestor, so that a search passes the ancestors in logarithmic time. */
  readonly #jumps: Int32Array

  constructor(values: readonly string[]) {
    this.#values = values.map((value) => Buffer.from(value)).sort(Buffer.compare)
    this.#parents = new Int32Array(values.length)
    this.#jumps = new Int32Array(values.length)
    const depths = new Int32Array(values.length)
    const open: number[] = []
    this.#values.forEach((value, i) => {
      while (open.length > 0 && commonBytes(this.#value(open.at(-1) as number), value, 0) < this.#value(open.at(-1) as number).length) open.pop()
      const parent = open.at(-1) ?? i
      const jump = this.#jumps[parent] as number
      const isEven =
        open.length > 0 && (depths[parent] as number) - (depths[jump] as number) === (depths[jump] as number) - (depths[this.#jumps[jump] as number] as number)
      this.#parents[i] = parent
      this.#jumps[i] = parent === i ? i : isEven ? (this.#jumps[jump] as number) : parent
      depths[i] = open.length
      open.push(i)
    })
  }

  /** The length of the longest value that stands at this position, or 0. */
  longestAt(bytes: Buffer, at: number): number {
    let index = this.#lastUpTo(bytes, at)
    if (index < 0) return 0
    // The longest value that the text begins with is the one that was found, or an ancestor of it.
    const common = commonBytes(this.#value(index), bytes, at)
    while (this.#value(index).length > common) {
      if (this.#parents[index] === index) return 0
      const jump = this.#jumps[index] as number
      index = this.#value(jump).length > common ? jump : (this.#parents[index] as number)
    }
    return this.#value(index).length
  }

  /** The index of the last value that does not come after the text from here on, or -1. */
  #lastUpTo(bytes: Buffer, at: number): number {
    let low = 0
    let high = this.#values.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#value(middle).compare(bytes, at) <= 0) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  #value(index: number): Buffer {
    return this.#values[index] as Buffer
  }
}

/** How many bytes of the value stand at this position. */
function commonBytes(value: Buffer, bytes: Buffer, at: number): number {
  const most = Math.min(value.length, bytes.length - at)
  if (value.compare(bytes, at, at + most, 0, most) === 0) return most
  let low = 0
  let high = most
  while (high - low > 1) {
    const middle = (low + high) >>> 1
    if (value.compare(bytes, at, at + middle, 0, middle) === 0) low = middle
    else high = middle
  }
  return low
}

function slotOf(first: number, second: number, third: number): number {
  return (first ^ (second << 5) ^ (third << 9)) & ((1 << tableBits) - 1)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
