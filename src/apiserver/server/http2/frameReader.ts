/**
 * Splits the bytes of a connection into frames (L3). A frame within one chunk is not copied; less than one frame is kept for the next chunk.
 * Pure. Upstream: RFC 9113 sections 3.4 and 4.
 */
import { ConnectionError, errorCode } from './errors.ts'
import { defaultFrameBytes, frameHeadBytes, preface } from './frames.ts'

export interface FrameSink {
  /** The payload is `bytes` from `start` to `end`. @returns false to stop reading */
  frame(type: number, flags: number, stream: number, bytes: Buffer, start: number, end: number): boolean
  /** True: the remaining frames are to be delivered with the next piece, which may be empty. */
  readonly isFull: boolean
}

export class FrameReader {
  #kept: Buffer[] = []
  #keptBytes = 0
  /** Bytes that are needed before the next frame can be read. */
  #wanted: number = preface.length
  #prefaced = false

  /** @throws ConnectionError for bytes that are not HTTP/2, and frames that are too large */
  push(piece: Buffer, sink: FrameSink): void {
    let bytes = piece
    if (this.#keptBytes > 0) {
      this.#kept.push(piece)
      this.#keptBytes += piece.length
      if (this.#keptBytes < this.#wanted) return
      bytes = Buffer.concat(this.#kept, this.#keptBytes)
      this.#kept = []
      this.#keptBytes = 0
    }
    const at = this.#prefaced ? 0 : this.#readPreface(bytes)
    this.#keep(bytes, this.#prefaced ? this.#readFrames(bytes, at, sink) : at)
  }

  #readPreface(bytes: Buffer): number {
    const length = Math.min(bytes.length, preface.length)
    if (bytes.compare(preface, 0, length, 0, length) !== 0) throw new ConnectionError(errorCode.protocolError, 'no connection preface')
    if (length < preface.length) return 0
    this.#prefaced = true
    return length
  }

  /** Returns where the first incomplete frame begins. */
  #readFrames(bytes: Buffer, from: number, sink: FrameSink): number {
    let at = from
    this.#wanted = frameHeadBytes
    while (bytes.length - at >= frameHeadBytes) {
      const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!
      if (length > defaultFrameBytes) throw new ConnectionError(errorCode.frameSizeError, `a frame of ${length} bytes`)
      const start = at + frameHeadBytes
      const end = start + length
      if (end > bytes.length) {
        this.#wanted = frameHeadBytes + length
        return at
      }
      const stream = ((bytes[at + 5]! & 0x7f) << 24) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 8) | bytes[at + 8]!
      at = end
      if (!sink.frame(bytes[start - 6]!, bytes[start - 5]!, stream, bytes, start, end)) return bytes.length
      if (sink.isFull) return at
    }
    return at
  }

  #keep(bytes: Buffer, from: number): void {
    if (from >= bytes.length) return
    this.#kept.push(from === 0 ? bytes : bytes.subarray(from))
    this.#keptBytes = bytes.length - from
  }
}
