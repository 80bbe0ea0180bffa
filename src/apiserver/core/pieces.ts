/**
 * A body as a sequence of existing byte strings (L3), such as the items of a list. A small body becomes one buffer; a large one is sent in chunks of
 * bounded size, so that a list of a hundred megabytes is not copied as a whole and does not block the event loop.
 */
export type Pieces = readonly Uint8Array[]

/** Up to here one buffer is cheaper. */
const wholeBytes = 256 * 1024
/** Longest part of a large body that is written at once. */
export const chunkBytes = 512 * 1024

export function lengthOf(pieces: Pieces): number {
  let length = 0
  for (const piece of pieces) length += piece.length
  return length
}

/** One buffer, or the chunks to send one after the other. */
export function bodyOf(pieces: Pieces, length: number): Uint8Array | Iterable<Uint8Array> {
  return length <= wholeBytes ? Buffer.concat(pieces, length) : chunksOf(pieces)
}

/** The pieces in a row, copied into chunks of at most `size` bytes; larger pieces go alone. */
export function* chunksOf(pieces: Pieces, size = chunkBytes): Generator<Uint8Array> {
  let chunk = Buffer.allocUnsafe(size)
  let at = 0
  for (const piece of pieces) {
    if (at + piece.length > chunk.length) {
      if (at > 0) yield chunk.subarray(0, at)
      // A piece that fills a chunk alone is sent as it is.
      if (piece.length >= size) {
        at = 0
        chunk = Buffer.allocUnsafe(size)
        yield piece
        continue
      }
      chunk = Buffer.allocUnsafe(size)
      at = 0
    }
    chunk.set(piece, at)
    at += piece.length
  }
  if (at > 0) yield chunk.subarray(0, at)
}
