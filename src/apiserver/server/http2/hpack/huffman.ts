/**
 * HPACK's Huffman code (L3), read by a table of ten bits at a time, which holds all of ASCII that is common; longer codes bit by bit. The code
 * is canonical: the code lengths define it. Pure. Upstream: RFC 7541 section 5.2 and appendix B.
 */
import { ConnectionError, errorCode } from '../errors.ts'

const codeLengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11,
  10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
  8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
  23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26,
  27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
  27, 27, 26, 30,
]
const endOfString = 256
const longest = 30
const tableBits = 10

/** Symbols by length, then by value: the order of a canonical code. */
const ordered = [...codeLengths.keys()].sort((a, b) => codeLengths[a]! - codeLengths[b]! || a - b)
const firstCodes = new Uint32Array(longest + 2)
const firstPlaces = new Uint32Array(longest + 2)
const counts = new Uint32Array(longest + 2)
/** Ten bits → symbol * 16 + length of its code; 0 where the code is longer. */
const table = new Uint16Array(1 << tableBits)
fillTables()

function fillTables(): void {
  for (const length of codeLengths) counts[length]!++
  for (let length = 1, code = 0, place = 0; length <= longest; length++) {
    firstCodes[length] = code
    firstPlaces[length] = place
    for (let i = 0; i < counts[length]! && length <= tableBits; i++) {
      const from = (code + i) << (tableBits - length)
      table.fill(ordered[place + i]! * 16 + length, from, from + (1 << (tableBits - length)))
    }
    code = (code + counts[length]!) << 1
    place += counts[length]!
  }
}

/** Decodes Huffman codes into a growing buffer, which is then read as text. */
export class HuffmanDecoder {
  #text: Buffer = Buffer.allocUnsafe(1024)

  /** @throws ConnectionError for an end-of-string symbol and for invalid padding */
  decode(bytes: Uint8Array, start: number, end: number): string {
    const most = Math.floor(((end - start) * 8) / 5) + 1
    if (this.#text.length < most) this.#text = Buffer.allocUnsafe(most)
    const text = this.#text
    let written = 0
    let at = start
    // The next unused bits, and their number.
    let bits = 0
    let count = 0
    for (;;) {
      bits &= (1 << count) - 1
      while (count < tableBits && at < end) {
        bits = (bits << 8) | bytes[at++]!
        count += 8
      }
      if (at === end && count < 8 && bits === (1 << count) - 1) return text.toString('latin1', 0, written)
      const missing = Math.max(0, tableBits - count)
      const entry = table[missing > 0 ? ((bits << missing) | ((1 << missing) - 1)) & ((1 << tableBits) - 1) : bits >>> (count - tableBits)]!
      const length = entry & 15
      if (length > 0 && length <= count) {
        text[written++] = entry >>> 4
        count -= length
        continue
      }
      const found = longCode(bytes, at * 8 - count, end * 8)
      text[written++] = found & 0xff
      const position = at * 8 - count + (found >>> 8)
      at = Math.ceil(position / 8)
      count = at * 8 - position
      bits = bytes[at - 1]!
    }
  }
}

/** The code at that bit: length * 256 + symbol. */
function longCode(bytes: Uint8Array, position: number, end: number): number {
  let code = 0
  for (let length = 1; length <= longest && position + length <= end; length++) {
    const bit = position + length - 1
    code = code * 2 + ((bytes[bit >>> 3]! >>> (7 - (bit & 7))) & 1)
    const place = code - firstCodes[length]!
    if (place < 0 || place >= counts[length]!) continue
    const symbol = ordered[firstPlaces[length]! + place]!
    if (symbol !== endOfString) return length * 256 + symbol
    break
  }
  throw new ConnectionError(errorCode.compressionError, 'an unknown Huffman code')
}
