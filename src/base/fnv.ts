/**
 * FNV hashes of 32 bits over the UTF-8 of texts, as unsigned numbers (L0). A text may be hashed in pieces: each call continues `hash`.
 * Upstream: Go's hash/fnv.
 */
const basis = 0x811c9dc5
const prime = 0x01000193
const encoder = new TextEncoder()

/** FNV-1a. */
export function fnv32a(text: string, hash = basis): number {
  let state = hash
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0x7f) return fnv32aBytes(encoder.encode(text.slice(i)), state >>> 0)
    state = Math.imul(state ^ code, prime)
  }
  return state >>> 0
}

export function fnv32aBytes(bytes: Uint8Array, hash = basis): number {
  let state = hash
  for (const byte of bytes) state = Math.imul(state ^ byte, prime)
  return state >>> 0
}

/** FNV-1. */
export function fnv32(text: string, hash = basis): number {
  let state = hash
  for (const byte of encoder.encode(text)) state = Math.imul(state, prime) ^ byte
  return state >>> 0
}
