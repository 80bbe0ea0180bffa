/**
 * Bytes in memory of their own size (L0). Node cuts short buffers out of shared slabs of 8 KiB, and a buffer that is kept keeps its whole slab: caches of
 * small objects then hold several times their size. Whatever outlives its request is made or copied here.
 */

/** The text in UTF-8. */
export function ownUtf8(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/** The pieces one after the other. */
export function ownConcat(pieces: readonly Uint8Array[]): Buffer {
  let length = 0
  for (const piece of pieces) length += piece.length
  const bytes = Buffer.allocUnsafeSlow(length)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

/** The same bytes if they fill their memory, otherwise a copy. */
export function inOwnMemory<T extends Uint8Array>(bytes: T): T | Buffer {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : ownConcat([bytes])
}
