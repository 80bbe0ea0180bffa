/**
 * SPDY/3.1 framing (L1), as far as Kubernetes uses it: many streams over one upgraded connection, headers compressed with one shared
 * context a direction. Either side may be the client. There is no flow control beyond the connection's own, as in upstream's library
 * (moby/spdystream): a stream without a reader pauses the connection, so memory stays bounded.
 * Specification: SPDY protocol draft 3.1.
 */
import { Duplex } from 'node:stream'
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from 'node:zlib'
import { emptyMap } from '#base/bareMap'
import { readOnAfterFailedWrites, takeUnread } from './lastWords.ts'
import { spdyDictionary } from './spdyDictionary.ts'

const frameType = { synStream: 1, synReply: 2, rstStream: 3, settings: 4, ping: 6, goAway: 7, headers: 8, windowUpdate: 9 } as const
const flagFin = 0x01
const version = 3
const maxDataBytes = 32 * 1024
/** Bound of one header block: the headers of exec, attach and port-forward take some hundred bytes, and a connection may have thousands of streams. */
const maxHeaderBytes = 8 * 1024
/** A control frame waits until it is whole, so it must be small; data frames are passed on as they come and may have any length. */
const maxControlBytes = maxHeaderBytes + 1024

export type SpdyHeaders = Readonly<Record<string, string>>

/** One stream. Ending the writable side sends FIN; destroying sends a reset. */
export class SpdyStream extends Duplex {
  readonly id: number
  readonly headers: SpdyHeaders
  readonly #connection: SpdyConnection
  #finReceived = false

  constructor(connection: SpdyConnection, id: number, headers: SpdyHeaders) {
    super({ allowHalfOpen: true, readableHighWaterMark: 256 * 1024 })
    this.#connection = connection
    this.id = id
    this.headers = headers
  }

  /** Tells the peer that the stream it opened is accepted. */
  accept(): Promise<void> {
    return this.#connection.sendReply(this.id)
  }

  /** Data from the peer; false when the reader is behind. What comes after its FIN is dropped. */
  receive(data: Buffer, fin: boolean): boolean {
    if (this.#finReceived || this.destroyed) return true
    const roomLeft = data.length === 0 || this.push(data)
    if (fin) {
      this.#finReceived = true
      this.push(null)
    }
    return roomLeft
  }

  /**
   * The peer has closed both directions. The reader first gets all received data: a copy loop over a stream that is destroyed earlier sees a
   * premature end and drops the data it has not passed on. Upstream's servers end every session with resets.
   */
  peerGone(): void {
    this.receive(Buffer.alloc(0), true)
    if (this.readableEnded) this.destroy()
    else this.once('end', () => this.destroy())
  }

  override _read(): void {
    this.#connection.resumeAfter(this)
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#connection.sendData(this.id, chunk, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#connection.sendFin(this.id, done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#connection.forget(this, error !== null || !this.writableFinished)
    done(error)
  }
}

export interface SpdyOptions {
  readonly client: boolean
  /** A stream that the peer opened; call accept() or destroy() it. */
  readonly onStream?: (stream: SpdyStream) => void
  /** Streams that may be open at once; more are refused with a reset. */
  readonly maxStreams?: number
}

export class SpdyConnection {
  readonly #socket: Duplex
  readonly #options: SpdyOptions
  readonly #streams = new Map<number, SpdyStream>()
  readonly #inflate: HeaderCodec
  readonly #deflate: HeaderCodec
  readonly #stalled = new Set<SpdyStream>()
  #buffered: Buffer = Buffer.alloc(0)
  /** The data frame that we are in the middle of. */
  #data = { id: 0, flags: 0, left: 0 }
  #nextId: number
  #lastPeerId = 0
  #inflating = false
  #ended = false
  #sending: Promise<void> = Promise.resolve()
  #closed = false
  readonly #onClose: (() => void)[] = []

  constructor(socket: Duplex, options: SpdyOptions, head?: Buffer) {
    this.#socket = socket
    this.#options = options
    this.#nextId = options.client ? 1 : 2
    const dictionary = spdyDictionary()
    this.#inflate = new HeaderCodec(createInflate({ dictionary, finishFlush: constants.Z_SYNC_FLUSH }), maxHeaderBytes)
    this.#deflate = new HeaderCodec(createDeflate({ dictionary, level: 6 }), maxHeaderBytes * 2)
    readOnAfterFailedWrites(socket)
    const onData = (chunk: Buffer) => this.#receive(chunk)
    socket.on('data', onData)
    // Frames that arrived before the end are still handled.
    const onEnd = () => {
      socket.off('data', onData)
      this.#ended = true
      this.#receive(takeUnread(socket))
    }
    socket.on('end', onEnd)
    socket.on('close', onEnd)
    socket.on('error', onEnd)
    if (head && head.length > 0) this.#receive(head)
  }

  get closed(): boolean {
    return this.#closed
  }

  onClose(fn: () => void): void {
    if (this.#closed) fn()
    else this.#onClose.push(fn)
  }

  /** Opens a stream; resolves once the request for it is written (the peer's reply is not awaited, as upstream's clients do). */
  async open(headers: SpdyHeaders): Promise<SpdyStream> {
    if (this.#closed) throw new Error('the SPDY connection is closed')
    const id = this.#nextId
    this.#nextId += 2
    const stream = new SpdyStream(this, id, headers)
    this.#streams.set(id, stream)
    await this.#sendHeaders(frameType.synStream, 0, headers, (block) => {
      const head = Buffer.alloc(10)
      head.writeUInt32BE(id, 0)
      return Buffer.concat([head, block])
    })
    return stream
  }

  sendReply(id: number): Promise<void> {
    return this.#sendHeaders(frameType.synReply, 0, {}, (block) => {
      const head = Buffer.alloc(4)
      head.writeUInt32BE(id, 0)
      return Buffer.concat([head, block])
    })
  }

  sendData(id: number, data: Buffer, done: (error?: Error | null) => void): void {
    this.#enqueue(() => {
      for (let at = 0; at < data.length; at += maxDataBytes) this.#writeData(id, 0, data.subarray(at, at + maxDataBytes))
      return this.#drained()
    }).then(() => done(), done)
  }

  sendFin(id: number, done: (error?: Error | null) => void): void {
    this.#enqueue(() => this.#writeData(id, flagFin, Buffer.alloc(0))).then(() => done(), done)
  }

  /** A stream is over on our side. */
  forget(stream: SpdyStream, reset: boolean): void {
    this.resumeAfter(stream)
    if (!this.#streams.delete(stream.id) || !reset || this.#closed) return
    this.#enqueue(() => this.#writeReset(stream.id, 5)).catch(() => {})
  }

  /** The reader of a stalled stream reads again. */
  resumeAfter(stream: SpdyStream): void {
    if (this.#stalled.delete(stream) && this.#stalled.size === 0) this.#socket.resume()
  }

  /** Ends every stream and the connection; what was written before is flushed first. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const stream of this.#streams.values()) stream.peerGone()
    this.#streams.clear()
    this.#stalled.clear()
    this.#socket.resume() // what still comes in is dropped, so that a peer in the middle of a write gets to its end
    this.#inflate.close()
    this.#sending
      .catch(() => {})
      .finally(() => {
        this.#deflate.close()
        this.#socket.end()
      })
    for (const fn of this.#onClose) fn()
  }

  #enqueue(send: () => unknown): Promise<void> {
    const sent = this.#sending.then(async () => {
      if (this.#socket.destroyed || this.#socket.writableEnded) throw new Error('the SPDY connection is closed')
      await send()
    })
    this.#sending = sent.catch(() => {})
    return sent
  }

  #drained(): Promise<void> | undefined {
    if (!this.#socket.writableNeedDrain) return undefined
    return new Promise((resolve) => {
      const go = () => {
        this.#socket.off('drain', go)
        this.#socket.off('close', go)
        resolve()
      }
      this.#socket.once('drain', go)
      this.#socket.once('close', go)
    })
  }

  #sendHeaders(type: number, flags: number, headers: SpdyHeaders, payload: (block: Buffer) => Buffer): Promise<void> {
    return this.#enqueue(async () => {
      const block = await this.#deflate.process(encodeHeaders(headers))
      this.#writeControl(type, flags, payload(block))
    })
  }

  #writeControl(type: number, flags: number, payload: Buffer): void {
    const head = Buffer.alloc(8)
    head.writeUInt16BE(0x8000 | version, 0)
    head.writeUInt16BE(type, 2)
    head.writeUInt32BE(((flags << 24) | payload.length) >>> 0, 4)
    this.#socket.write(Buffer.concat([head, payload]))
  }

  #writeData(id: number, flags: number, data: Buffer): void {
    const head = Buffer.alloc(8)
    head.writeUInt32BE(id, 0)
    head.writeUInt32BE(((flags << 24) | data.length) >>> 0, 4)
    this.#socket.write(head)
    if (data.length > 0) this.#socket.write(data)
  }

  #writeReset(id: number, status: number): void {
    const payload = Buffer.alloc(8)
    payload.writeUInt32BE(id, 0)
    payload.writeUInt32BE(status, 4)
    this.#writeControl(frameType.rstStream, 0, payload)
  }

  #receive(chunk: Buffer): void {
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk])
    this.#parse()
  }

  /** Handles what is there. Data at once, also a part of a frame, so that a pause takes effect; header blocks wait for zlib, and all else for them. */
  #parse(): void {
    while (!this.#closed && !this.#inflating && (this.#data.left > 0 ? this.#takeData() : this.#takeFrame())) {}
    if (this.#ended && !this.#inflating) this.close()
  }

  /** False when more bytes are needed. */
  #takeFrame(): boolean {
    if (this.#buffered.length < 8) return false
    const first = this.#buffered.readUInt32BE(0)
    const flags = this.#buffered.readUInt8(4)
    const length = this.#buffered.readUIntBE(5, 3)
    if (first >>> 31) {
      if (length > maxControlBytes) {
        this.close()
        return false
      }
      if (this.#buffered.length < 8 + length) return false
      this.#onControl(first & 0xffff, flags, this.#take(8 + length).subarray(8))
      return true
    }
    this.#take(8)
    this.#data = { id: first, flags, left: length }
    if (length === 0) this.#onData(first, flags, Buffer.alloc(0))
    return true
  }

  #takeData(): boolean {
    if (this.#buffered.length === 0) return false
    const { id, flags, left } = this.#data
    const part = this.#take(Math.min(left, this.#buffered.length))
    this.#data.left = left - part.length
    this.#onData(id, this.#data.left === 0 ? flags : 0, part)
    return true
  }

  #take(bytes: number): Buffer {
    const taken = this.#buffered.subarray(0, bytes)
    this.#buffered = this.#buffered.subarray(bytes)
    return taken
  }

  /** Decompresses a header block; frames behind it wait. The shared context must see every block, even those of streams that were refused. */
  #inflateThen(block: Buffer, use: (headers: SpdyHeaders) => void): void {
    this.#inflating = true
    this.#socket.pause()
    this.#inflate.process(block).then(
      (bytes) => {
        this.#inflating = false
        if (this.#closed) return
        try {
          use(decodeHeaders(bytes))
        } catch {
          this.close()
          return
        }
        if (this.#stalled.size === 0) this.#socket.resume()
        this.#parse()
      },
      () => this.close(),
    )
  }

  #onData(id: number, flags: number, data: Buffer): void {
    const stream = this.#streams.get(id)
    if (!stream) return
    if (!stream.receive(data, (flags & flagFin) !== 0)) {
      this.#stalled.add(stream)
      this.#socket.pause()
    }
  }

  #onControl(type: number, flags: number, payload: Buffer): void {
    if (payload.length < 4) return
    const id = payload.readUInt32BE(0) & 0x7fffffff
    switch (type) {
      case frameType.synStream:
        this.#inflateThen(payload.subarray(10), (headers) => this.#onSynStream(id, flags, headers))
        break
      case frameType.synReply:
      case frameType.headers:
        this.#inflateThen(payload.subarray(4), () => {})
        break
      case frameType.rstStream:
        this.#streams.get(id)?.peerGone()
        this.#streams.delete(id)
        break
      case frameType.ping: {
        const ours = (id & 1) === (this.#options.client ? 1 : 0)
        if (!ours) void this.#enqueue(() => this.#writeControl(frameType.ping, 0, Buffer.from(payload))).catch(() => {})
        break
      }
      default: // SETTINGS, GOAWAY and WINDOW_UPDATE ask nothing of us
        break
    }
  }

  #onSynStream(id: number, flags: number, headers: SpdyHeaders): void {
    const { onStream, maxStreams = 4096 } = this.#options
    if (id <= this.#lastPeerId) throw new Error('SPDY stream ids must grow')
    this.#lastPeerId = id
    if (!onStream || this.#streams.size >= maxStreams) {
      void this.#enqueue(() => this.#writeReset(id, 3)).catch(() => {})
      return
    }
    const stream = new SpdyStream(this, id, headers)
    stream.on('error', () => {})
    this.#streams.set(id, stream)
    if (flags & flagFin) stream.receive(Buffer.alloc(0), true)
    onStream(stream)
  }
}

/** One direction's header compression: blocks in, blocks out, one at a time, flushed to a byte border after each. */
class HeaderCodec {
  readonly #zlib: Deflate | Inflate
  readonly #maxBytes: number

  constructor(zlib: Deflate | Inflate, maxBytes: number) {
    this.#zlib = zlib
    this.#maxBytes = maxBytes
    zlib.on('error', () => {})
  }

  process(block: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let bytes = 0
      const onData = (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > this.#maxBytes) finish(new Error('SPDY header block too large'))
        else chunks.push(chunk)
      }
      const finish = (error?: Error | null) => {
        this.#zlib.off('data', onData)
        this.#zlib.off('error', finish)
        if (error) reject(error)
        else resolve(Buffer.concat(chunks))
      }
      this.#zlib.on('data', onData)
      this.#zlib.once('error', finish)
      this.#zlib.write(block)
      this.#zlib.flush(constants.Z_SYNC_FLUSH, () => finish())
    })
  }

  close(): void {
    this.#zlib.close()
  }
}

function encodeHeaders(headers: SpdyHeaders): Buffer {
  const entries = Object.entries(headers)
  const parts = [uint32(entries.length)]
  for (const [name, value] of entries) {
    for (const text of [name.toLowerCase(), value]) {
      const bytes = Buffer.from(text, 'utf8')
      parts.push(uint32(bytes.length), bytes)
    }
  }
  return Buffer.concat(parts)
}

function decodeHeaders(block: Buffer): SpdyHeaders {
  const headers: Record<string, string> = emptyMap()
  let at = 4
  const text = () => {
    const length = block.readUInt32BE(at)
    at += 4 + length
    if (at > block.length) throw new Error('SPDY header block cut short')
    return block.toString('utf8', at - length, at)
  }
  for (let left = block.readUInt32BE(0); left > 0; left--) {
    const name = text()
    headers[name.toLowerCase()] = text()
  }
  return headers
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
