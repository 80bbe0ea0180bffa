/**
 * One HTTP/2 connection of a client (L3): reads frames into requests and writes answers as frames, with one write per turn of the event loop. A
 * protocol error ends its stream or the connection. Upstream: RFC 9113; golang.org/x/net/http2 (serverConn).
 */
import type { TLSSocket } from 'node:tls'
import type { Timer } from '#base/clock'
import { type ExchangeDeps, serve } from '../exchange.ts'
import type { Peer } from '../incoming.ts'
import type { HeaderMap } from '../respond.ts'
import { ConnectionCare } from './connectionCare.ts'
import { ConnectionError, errorCode } from './errors.ts'
import { FrameReader, type FrameSink } from './frameReader.ts'
import { checkFrame, endOfPadded, protocolError, readSettings } from './frameRules.ts'
import { defaultWindow, flag, frameType, goawayFrame, pingAck, rstStreamFrame, setting, settingsAck, settingsFrame, windowUpdateFrame } from './frames.ts'
import { HeaderBlock } from './headerBlock.ts'
import { HpackDecoder } from './hpack/decoder.ts'
import { Outbox } from './outbox.ts'
import { ReceiveWindow } from './receiveWindow.ts'
import { RecentResets } from './recentResets.ts'
import { RequestHead, Trailers } from './requestHead.ts'
import type { Piece, Slab } from './slab.ts'
import { Http2Stream, type StreamOwner } from './stream.ts'
import type { Turns, TurnTaker } from './turns.ts'

/** What the connections of a server share. */
export interface Shared {
  readonly deps: ExchangeDeps
  readonly idleMs: number
  readonly maxStreams: number
  readonly slab: Slab
  readonly turns: Turns
  block(status: number, headers: HeaderMap): string
}

const nothing = Buffer.alloc(0)
const mostHeaderBytes = 256 * 1024
const connectionWindowBytes = 8 * 1024 * 1024
/** Bound of the socket's buffer: no more is written until it drains. */
const mostSocketBytes = 512 * 1024
/** Requests of one connection that begin in one turn of the event loop, before other connections have their turn. */
const mostPerTurn = 8
/** How long a connection is not read after a refusal with 429: 80 busy connections then take a tenth of a core, not most of one. */
const unheardMs = 20
/** How long a client may take to close its side. */
const lingerMs = 1_000

export class Http2Connection implements FrameSink, StreamOwner, TurnTaker {
  readonly #shared: Shared
  readonly #socket: TLSSocket
  readonly #reader = new FrameReader()
  readonly #decoder = new HpackDecoder()
  readonly #outbox = new Outbox()
  readonly #care: ConnectionCare
  readonly #streams = new Map<number, Http2Stream>()
  readonly #window = new ReceiveWindow(connectionWindowBytes)
  readonly #resets = new RecentResets()
  #peer: Peer | undefined
  #block: HeaderBlock | undefined
  #lastStream = 0
  #streamWindow: number = defaultWindow
  #hasSettings = false
  #isScheduled = false
  /** Requests begun from the current piece of input. */
  #begun = 0
  isFull = false
  /** True after GOAWAY: new requests are refused. */
  #isEnding = false
  /** True when received bytes are ignored. */
  #isOver = false
  #linger: Timer | undefined

  constructor(socket: TLSSocket, shared: Shared) {
    this.#shared = shared
    this.#socket = socket
    this.#care = new ConnectionCare(this, shared.deps.clock, shared.idleMs)
    this.#outbox.addControl(
      settingsFrame([
        [setting.maxConcurrentStreams, shared.maxStreams],
        [setting.initialWindowSize, Http2Stream.windowBytes],
        [setting.maxHeaderListSize, mostHeaderBytes],
      ]),
    )
    this.#outbox.addControl(windowUpdateFrame(0, connectionWindowBytes - defaultWindow))
    this.#schedule()
    socket.on('data', (piece: Buffer) => this.#read(piece))
    socket.on('drain', () => {
      if (!this.#outbox.isEmpty) this.#schedule()
    })
    socket.on('close', () => this.#closed())
  }

  get peer(): Peer {
    this.#peer ??= this.#shared.deps.peerOf(this.#socket)
    return this.#peer
  }

  get bytesWritten(): number {
    return this.#socket.bytesWritten
  }

  destroy(): void {
    this.#isOver = true
    this.#socket.destroy()
  }

  letGo(): void {
    if (this.#streams.size === 0 && this.#socket.writableLength === 0 && !this.#isEnding) this.endGracefully()
    else this.destroy()
  }

  endGracefully(): void {
    if (this.#isEnding || this.#isOver) return
    this.#isEnding = true
    this.#outbox.addControl(goawayFrame(this.#lastStream, errorCode.noError))
    this.#schedule()
  }

  block(status: number, headers: HeaderMap): string {
    return this.#shared.block(status, headers)
  }

  ready(stream: Http2Stream): void {
    this.#outbox.addStream(stream)
    this.#schedule()
  }

  answered(): void {
    this.#care.answered()
  }

  reset(stream: Http2Stream, code: number): void {
    if (stream.isClosed) return
    this.#sendReset(stream.id, code)
    this.#close(stream, code)
  }

  /** Pauses reading after a 429: refusals take time too, and a client that retries at full speed would delay other connections. */
  toldToWait(): void {
    if (this.isFull) return
    this.#stopReading()
    this.#shared.deps.clock.timer(unheardMs, () => this.#shared.turns.readOnLater(this))
  }

  consumed(stream: Http2Stream, bytes: number): void {
    const increment = stream.taken(bytes)
    if (increment > 0) this.#send(windowUpdateFrame(stream.id, increment))
    this.#giveBack(bytes)
  }

  /** Writes as much as windows and socket allow; once per turn of the event loop. */
  flush(): void {
    this.#isScheduled = false
    const socket = this.#socket
    const room = mostSocketBytes - socket.writableLength
    // The socket emits 'drain' when it has room again.
    if (this.#isOver || !socket.writable || room <= 0) return
    const { slab } = this.#shared
    this.#outbox.pack(slab, room, this.#sent)
    this.#write(slab.take())
    if (this.#isEnding && this.#streams.size === 0 && this.#outbox.isEmpty) this.#finish()
  }

  readOn(): void {
    this.isFull = false
    this.#read(nothing)
    if (!this.isFull) this.#socket.resume()
  }

  frame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
    if (!this.#hasSettings && (type !== frameType.settings || (flags & flag.ack) !== 0)) throw protocolError('no settings at the beginning')
    if (this.#block && (type !== frameType.continuation || id !== this.#block.stream)) throw protocolError('a frame within a header block')
    checkFrame(type, flags, id, end - start)
    switch (type) {
      case frameType.data:
        this.#data(flags, id, bytes, start, end)
        break
      case frameType.headers:
        this.#headers(flags, id, bytes, start, end)
        break
      case frameType.continuation:
        this.#continuation(flags, bytes.subarray(start, end))
        break
      case frameType.windowUpdate:
        this.#windowUpdate(id, bytes.readUInt32BE(start) & 0x7fff_ffff)
        break
      case frameType.rstStream:
        this.#rstStream(id, bytes.readUInt32BE(start))
        break
      case frameType.settings:
        this.#settings(flags, bytes, start, end)
        break
      case frameType.pushPromise:
        throw protocolError('a client that pushes')
      case frameType.goaway:
        this.endGracefully()
        break
      default:
        this.#tolerate()
        if (type === frameType.ping && (flags & flag.ack) === 0) this.#send(pingAck(bytes.subarray(start, end)))
        else if (type === frameType.priority && end - start !== 5) this.#resetUnlessIdle(id, errorCode.frameSizeError)
    }
    return !this.#isOver
  }

  #read(piece: Buffer): void {
    if (this.#isOver) return
    this.#begun = 0
    try {
      this.#reader.push(piece, this)
    } catch (error) {
      if (!(error instanceof ConnectionError)) this.#shared.deps.log.error(error, 'Reading from an HTTP/2 connection failed')
      this.#fail(error instanceof ConnectionError ? error.code : errorCode.internalError)
    }
  }

  /** Stops reading until the other connections had their turn. */
  #pause(): void {
    this.#stopReading()
    this.#shared.turns.readOnLater(this)
  }

  #stopReading(): void {
    this.isFull = true
    this.#socket.pause()
  }

  #data(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const length = end - start
    if (!this.#window.take(length)) throw new ConnectionError(errorCode.flowControlError, 'more data than the connection may send')
    const isPadded = (flags & flag.padded) !== 0
    const to = isPadded ? endOfPadded(bytes, start, end) : end
    const from = isPadded ? start + 1 : start
    const ends = (flags & flag.endStream) !== 0
    if (from === to && !ends) this.#tolerate()
    const stream = this.#streams.get(id)
    if (!stream) {
      this.#giveBack(length)
      this.#strayFrame(id, frameType.data)
      return
    }
    const code = stream.received(bytes.subarray(from, to), length) || (ends ? stream.receivedAll() : 0)
    if (code !== 0) {
      this.#giveBack(length)
      this.reset(stream, code)
      return
    }
    // Padding is not delivered, so it is given back to the window at once.
    if (isPadded) this.consumed(stream, length - (to - from))
    if (ends) this.#closeIfDone(stream)
  }

  #headers(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    if ((id & 1) === 0) throw protocolError('a stream that only servers open')
    const isPadded = (flags & flag.padded) !== 0
    const to = isPadded ? endOfPadded(bytes, start, end) : end
    const from = start + (isPadded ? 1 : 0) + (flags & flag.priority ? 5 : 0)
    if (from > to) throw protocolError('headers without room for their priority')
    const ends = (flags & flag.endStream) !== 0
    if (flags & flag.endHeaders) this.#headersComplete(id, ends, bytes, from, to)
    else this.#block = new HeaderBlock(id, ends, bytes.subarray(from, to), mostHeaderBytes)
  }

  #continuation(flags: number, fragment: Buffer): void {
    const block = this.#block
    if (!block) throw protocolError('a continuation of nothing')
    block.add(fragment)
    if ((flags & flag.endHeaders) === 0) return
    this.#block = undefined
    const whole = block.whole()
    this.#headersComplete(block.stream, block.endsStream, whole, 0, whole.length)
  }

  #headersComplete(id: number, ends: boolean, bytes: Buffer, start: number, end: number): void {
    const stream = this.#streams.get(id)
    if (stream || id <= this.#lastStream || this.#isEnding) {
      // Refused blocks are decoded too: later blocks depend on the table.
      const trailers = new Trailers()
      this.#decoder.decode(bytes, start, end, trailers)
      if (stream) this.#trailersOf(stream, ends && trailers.isSound)
      else this.#strayFrame(id, frameType.headers)
      return
    }
    const head = new RequestHead(mostHeaderBytes)
    this.#decoder.decode(bytes, start, end, head)
    this.#lastStream = id
    if (this.#streams.size >= this.#shared.maxStreams) this.#refuse(id, errorCode.refusedStream)
    else if (head.isTooLarge) this.#open(id, head, !ends).refuseHeaders()
    else if (!head.isRequest(ends)) this.#refuse(id, errorCode.protocolError)
    else {
      const opened = this.#open(id, head, !ends)
      void serve(this.#shared.deps, opened, opened)
      if (!this.isFull && (++this.#begun === mostPerTurn || !this.#shared.turns.take())) this.#pause()
    }
  }

  #open(id: number, head: RequestHead, hasBody: boolean): Http2Stream {
    const stream = new Http2Stream(id, head, hasBody, this, this.#streamWindow)
    this.#streams.set(id, stream)
    this.#care.opened()
    return stream
  }

  #trailersOf(stream: Http2Stream, areSound: boolean): void {
    const code = areSound ? stream.receivedAll() : stream.isRemoteEnded ? errorCode.streamClosed : errorCode.protocolError
    if (code !== 0) this.reset(stream, code)
    else this.#closeIfDone(stream)
  }

  /** A frame of a stream that is not open: the client may have sent it before it saw this side's RST_STREAM or GOAWAY. */
  #strayFrame(id: number, type: number): void {
    this.#tolerate()
    if (id > this.#lastStream) {
      if (!this.#isEnding) throw protocolError(`a frame of type ${type} on a stream that is idle`)
    } else if (!this.#resets.has(id)) {
      if (type === frameType.headers) throw new ConnectionError(errorCode.streamClosed, 'headers of a stream that is closed')
      this.#refuse(id, errorCode.streamClosed)
    }
  }

  #windowUpdate(id: number, increment: number): void {
    if (id === 0) {
      if (increment === 0) throw protocolError('a window update of nothing')
      if (!this.#outbox.widen(increment)) throw new ConnectionError(errorCode.flowControlError, 'a window that is too large')
      if (!this.#outbox.isEmpty) this.#schedule()
      return
    }
    const stream = this.#streams.get(id)
    if (!stream) {
      if (id > this.#lastStream && !this.#isEnding) throw protocolError('a window update on a stream that is idle')
      return
    }
    if (increment === 0) this.reset(stream, errorCode.protocolError)
    else if (!stream.sending.widen(increment)) this.reset(stream, errorCode.flowControlError)
    else if (stream.sending.bytes > 0) this.ready(stream)
  }

  #rstStream(id: number, code: number): void {
    const stream = this.#streams.get(id)
    if (stream) this.#close(stream, code)
    else if (id > this.#lastStream && !this.#isEnding) throw protocolError('a reset of a stream that is idle')
    else this.#tolerate()
  }

  #settings(flags: number, bytes: Buffer, start: number, end: number): void {
    if (flags & flag.ack) return
    if (this.#hasSettings) this.#tolerate()
    this.#hasSettings = true
    const { frameBytes, windowBytes } = readSettings(bytes, start, end)
    if (frameBytes !== undefined) this.#outbox.frameBytes = frameBytes
    if (windowBytes !== undefined) this.#changeStreamWindows(windowBytes)
    this.#send(settingsAck)
  }

  #changeStreamWindows(windowBytes: number): void {
    const change = windowBytes - this.#streamWindow
    this.#streamWindow = windowBytes
    for (const stream of this.#streams.values()) {
      if (!stream.sending.widen(change)) throw new ConnectionError(errorCode.flowControlError, 'a window that is too large')
      if (change > 0 && stream.sending.bytes > 0) this.ready(stream)
    }
  }

  #resetUnlessIdle(id: number, code: number): void {
    const stream = this.#streams.get(id)
    if (stream) this.reset(stream, code)
    else throw new ConnectionError(code, 'a frame of a wrong length')
  }

  /** Resets a stream that was never opened, or is closed. */
  #refuse(id: number, code: number): void {
    this.#sendReset(id, code)
    this.#care.wasReset()
  }

  #sendReset(id: number, code: number): void {
    this.#resets.add(id)
    this.#send(rstStreamFrame(id, code))
  }

  #giveBack(bytes: number): void {
    const increment = this.#window.give(bytes)
    if (increment > 0) this.#send(windowUpdateFrame(0, increment))
  }

  #tolerate(): void {
    if (!this.#care.tolerates()) throw new ConnectionError(errorCode.enhanceYourCalm, 'too many frames that further nothing')
  }

  #send(frame: Buffer): void {
    if (this.#isOver) return
    this.#outbox.addControl(frame)
    this.#schedule()
  }

  /** The last frame of an answer is written. If the client is still sending, NO_ERROR tells it to stop. */
  readonly #sent = (stream: Http2Stream): void => {
    if (!stream.isRemoteEnded) this.#sendReset(stream.id, errorCode.noError)
    this.#close(stream, errorCode.noError)
  }

  #closeIfDone(stream: Http2Stream): void {
    if (stream.isAnswered && !stream.sending.isQueued && stream.sending.bytes === 0) this.#close(stream, errorCode.noError)
  }

  #close(stream: Http2Stream, code: number): void {
    this.#streams.delete(stream.id)
    if (!stream.isAnswered) this.#care.answered()
    stream.closed()
    if (code !== errorCode.noError) this.#care.wasReset()
    if (this.#isEnding && this.#streams.size === 0) this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isOver) return
    this.#isScheduled = true
    this.#shared.turns.flushAtEnd(this)
  }

  #write(pieces: readonly Piece[]): void {
    if (pieces.length > 1) this.#socket.cork()
    // A destroyed socket still calls `sent`, so that the pieces are released.
    for (const { bytes, sent } of pieces) this.#socket.write(bytes, sent)
    if (pieces.length > 1) this.#socket.uncork()
  }

  #fail(code: number): void {
    if (this.#isOver) return
    this.#socket.write(goawayFrame(this.#lastStream, code))
    this.#finish()
  }

  /** Ends the sending side, and gives the client time to read before the connection is destroyed. */
  #finish(): void {
    this.#isOver = true
    this.#socket.end()
    this.#linger = this.#shared.deps.clock.timer(lingerMs, () => this.#socket.destroy())
    this.#closeStreams()
  }

  #closed(): void {
    this.#isOver = true
    this.#linger?.cancel()
    this.#care.release()
    this.#closeStreams()
  }

  #closeStreams(): void {
    const streams = [...this.#streams.values()]
    this.#streams.clear()
    for (const stream of streams) stream.closed()
  }
}
