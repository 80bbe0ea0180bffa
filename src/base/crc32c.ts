/** CRC-32 with Castagnoli's polynomial (L0, pure), eight bytes a step. Upstream: Go's hash/crc32. */

const polynomial = 0x82f63b78
const steps = 8
const tables = makeTables()

/** The checksum of more bytes, as an unsigned number. @param before the checksum of what precedes them; 0: nothing */
export function crc32c(bytes: Uint8Array, before = 0): number {
  const end = bytes.length - (bytes.length % steps)
  let state = ~before
  let at = 0
  for (; at < end; at += steps) {
    state ^= (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)
    state =
      (tables[0x700 + (state & 0xff)] as number) ^
      (tables[0x600 + ((state >>> 8) & 0xff)] as number) ^
      (tables[0x500 + ((state >>> 16) & 0xff)] as number) ^
      (tables[0x400 + (state >>> 24)] as number) ^
      (tables[0x300 + (bytes[at + 4] as number)] as number) ^
      (tables[0x200 + (bytes[at + 5] as number)] as number) ^
      (tables[0x100 + (bytes[at + 6] as number)] as number) ^
      (tables[bytes[at + 7] as number] as number)
  }
  for (; at < bytes.length; at++) state = (state >>> 8) ^ (tables[(state ^ (bytes[at] as number)) & 0xff] as number)
  return ~state >>> 0
}

/** Table n tells the effect of a byte that n more bytes follow. */
function makeTables(): Uint32Array {
  const all = new Uint32Array(steps * 256)
  for (let index = 0; index < 256; index++) {
    let state = index
    for (let bit = 0; bit < 8; bit++) state = state & 1 ? (state >>> 1) ^ polynomial : state >>> 1
    all[index] = state
  }
  for (let at = 256; at < all.length; at++) {
    const before = all[at - 256] as number
    all[at] = (before >>> 8) ^ (all[before & 0xff] as number)
  }
  return all
}
