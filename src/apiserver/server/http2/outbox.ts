/**
 * The send queue of a connection (L3): control frames first, then the streams in turns, as far as the windows and the socket allow.
 * Upstream: RFC 9113 sections 5.2 and 6.9; golang.org/x/net/http2 (maxQueuedControlFrames).
 */
import { append } from '#base/extremes'
import { ConnectionError, errorCode } from './errors.ts'
import { defaultFrameBytes, defaultWindow, flag, frameHeadBytes, frameType, largestWindow, writeFrameHead } from './frames.ts'
import type { Slab } from './slab.ts'
import type { Http2Stream } from './stream.ts'

/** A peer that causes more queued control frames than this, and reads none, is disconnected. */
const mostControlFrames = 10_000
/** Bytes that a stream may send before others have their turn. */
const turnBytes = 128 * 1024
/** Estimated bytes of a header block or a control frame. */
const headEstimate = 300
const controlEstimate = 17

export class Outbox {
  /** The peer's SETTINGS_MAX_FRAME_SIZE. */
  frameBytes: number = defaultFrameBytes
  #window: number = defaultWindow
  #control: Buffer[] = []
  #row: Http2Stream[] = []

  get isEmpty(): boolean {
    return this.#control.length === 0 && this.#row.length === 0
  }

  /** @throws ConnectionError when too many wait already */
  addControl(frame: Buffer): void {
    this.#control.push(frame)
    if (this.#control.length > mostControlFrames) throw new ConnectionError(errorCode.enhanceYourCalm, 'too many frames that want an answer')
  }

  addStream(stream: Http2Stream): void {
    if (stream.sending.isQueued) return
    stream.sending.isQueued = true
    this.#row.push(stream)
  }

  /** False: the window exceeds the maximum. */
  widen(increment: number): boolean {
    this.#window += increment
    return this.#window <= largestWindow
  }

  /**
   * Writes the frames that can be sent now, about `mostBytes`.
   * @param sent called for each stream whose last frame is written
   */
  pack(slab: Slab, mostBytes: number, sent: (stream: Http2Stream) => void): void {
    slab.room(this.#estimate(mostBytes))
    for (const frame of this.#control) slab.add(frame)
    this.#control = []
    let left = mostBytes
    while (left > 0 && this.#row.length > 0) {
      const row = this.#row
      this.#row = []
      const before = left
      for (const [index, stream] of row.entries()) {
        if (left <= 0) {
          append(this.#row, row.slice(index))
          return
        }
        left -= this.#turn(stream, slab, sent)
      }
      // The remaining streams all wait for the connection's window.
      if (left === before) return
    }
  }

  /** Estimates the bytes to write, so that they fit in one piece: the socket would copy several into one. */
  #estimate(mostBytes: number): number {
    let bytes = 0
    for (const { sending } of this.#row) {
      bytes += Math.min(sending.bytes, Math.max(0, sending.window)) + headEstimate
      if (bytes >= mostBytes) break
    }
    const data = Math.min(bytes, mostBytes, this.#window)
    return data + frameHeadBytes * Math.ceil(data / this.frameBytes) + this.#control.length * controlEstimate
  }

  /** Returns how many bytes were written. */
  #turn(stream: Http2Stream, slab: Slab, sent: (stream: Http2Stream) => void): number {
    const { sending } = stream
    sending.isQueued = false
    if (stream.isClosed) return 0
    const writtenHead = sending.head === undefined ? 0 : this.#writeHead(stream, sending.head, slab)
    const writtenData = sending.bytes > 0 ? this.#writeData(stream, slab) : 0
    if (sending.bytes === 0) {
      if (sending.isEnding) {
        if (writtenHead === 0 && writtenData === 0) writeEnd(stream.id, slab)
        sent(stream)
      } else stream.emptied()
    } else if (sending.window > 0) this.addStream(stream)
    return writtenHead + writtenData
  }

  #writeHead(stream: Http2Stream, block: string, slab: Slab): number {
    const { sending } = stream
    sending.head = undefined
    const ends = sending.isEnding && sending.bytes === 0 ? flag.endStream : 0
    for (let at = 0; at === 0 || at < block.length; at += this.frameBytes) {
      const length = Math.min(this.frameBytes, block.length - at)
      const isLast = at + length >= block.length ? flag.endHeaders : 0
      slab.room(frameHeadBytes + length)
      if (at === 0) writeFrameHead(slab.bytes, slab.at, length, frameType.headers, ends | isLast, stream.id)
      else writeFrameHead(slab.bytes, slab.at, length, frameType.continuation, isLast, stream.id)
      slab.bytes.write(length === block.length ? block : block.slice(at, at + length), slab.at + frameHeadBytes, 'latin1')
      slab.at += frameHeadBytes + length
    }
    return block.length + frameHeadBytes
  }

  #writeData(stream: Http2Stream, slab: Slab): number {
    const { sending } = stream
    const most = Math.min(sending.bytes, sending.window, this.#window, turnBytes)
    if (most <= 0) return 0
    slab.room(most + frameHeadBytes * Math.ceil(most / this.frameBytes))
    for (let left = most; left > 0; ) {
      const length = Math.min(left, this.frameBytes)
      left -= length
      const ends = sending.isEnding && sending.bytes === length ? flag.endStream : 0
      writeFrameHead(slab.bytes, slab.at, length, frameType.data, ends, stream.id)
      sending.moveTo(slab.bytes, slab.at + frameHeadBytes, length)
      slab.at += frameHeadBytes + length
    }
    sending.window -= most
    this.#window -= most
    return most
  }
}

function writeEnd(stream: number, slab: Slab): void {
  slab.room(frameHeadBytes)
  writeFrameHead(slab.bytes, slab.at, 0, frameType.data, flag.endStream, stream)
  slab.at += frameHeadBytes
}
