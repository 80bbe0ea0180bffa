/** Base 32 (L0), as names that are hashes use it. */

const digits = 'abcdefghijklmnopqrstuvwxyz234567'

/** RFC 4648 in lower case, without padding. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) text += digits[(value >> (bits - 5)) & 31]
    value &= (1 << bits) - 1
  }
  return bits > 0 ? text + digits[(value << (5 - bits)) & 31] : text
}
