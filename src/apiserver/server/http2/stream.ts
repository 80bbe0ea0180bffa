/**
 * One request and its answer on an HTTP/2 connection (L3): one object with shared methods; nothing is made per stream that not every request
 * uses. Written bytes wait here until the connection sends them.
 */
import { type Readable, Writable } from 'node:stream'
import { Cancellation } from '../../core/cancellation.ts'
import type { Pieces } from '../../core/pieces.ts'
import { connectionClosed } from '../exchange.ts'
import type { Arrived, Peer } from '../incoming.ts'
import type { HeaderMap, Outgoing } from '../respond.ts'
import { errorCode } from './errors.ts'
import { largestWindow } from './frames.ts'
import { ReceiveWindow } from './receiveWindow.ts'
import { RequestBody } from './requestBody.ts'
import type { RequestHead } from './requestHead.ts'

/** What a stream needs from its connection. */
export interface StreamOwner {
  readonly peer: Peer
  /** The header block of an answer, each character a byte. */
  block(status: number, headers: HeaderMap): string
  /** The stream has bytes to send. */
  ready(stream: Http2Stream): void
  /** The answer is complete. */
  answered(): void
  reset(stream: Http2Stream, code: number): void
  /** Open streams are finished; new ones are refused. */
  endGracefully(): void
  /** The answer was 429. */
  toldToWait(): void
  /** The handler read so many bytes of the stream's body. */
  consumed(stream: Http2Stream, bytes: number): void
}

/** Bytes that a stream may queue before its producer has to wait. */
const highWaterBytes = 16 * 1024
const streamWindowBytes = 1024 * 1024
const nothing = Buffer.alloc(0)
const tooManyRequests = 429

export class Http2Stream implements Arrived, Outgoing {
  readonly id: number
  readonly method: string
  readonly url: string
  readonly headers: Arrived['headers']
  readonly cancellation = new Cancellation()
  readonly isHttp2 = true
  readonly sending = new Sending()
  isAnswered = false
  isClosed = false
  readonly #owner: StreamOwner
  readonly #announcedBytes: number | undefined
  readonly #body: RequestBody | undefined
  readonly #window: ReceiveWindow | undefined
  #receivedBytes = 0
  #hasStarted = false
  #pipe: Writable | undefined
  #waiting: (() => void)[] | undefined

  constructor(id: number, head: RequestHead, hasBody: boolean, owner: StreamOwner, sendWindow: number) {
    this.id = id
    this.method = head.method
    this.url = head.path === '' ? '/' : head.path
    this.headers = head.headers
    this.#announcedBytes = head.contentLength
    this.#owner = owner
    this.sending.window = sendWindow
    if (!hasBody) return
    this.#window = new ReceiveWindow(streamWindowBytes)
    this.#body = new RequestBody((bytes) => owner.consumed(this, bytes))
  }

  static get windowBytes(): number {
    return streamWindowBytes
  }

  get peer(): Peer {
    return this.#owner.peer
  }

  /** The peer sent END_STREAM. */
  get isRemoteEnded(): boolean {
    return this.#body === undefined || this.#body.isComplete
  }

  get body(): Readable | undefined {
    return this.#body?.stream()
  }

  readBody(mostBytes: number): Promise<Buffer> {
    return this.#body ? this.#body.whole(mostBytes, this.#announcedBytes ?? 0) : Promise.resolve(nothing)
  }

  /** Takes bytes of the body. @param flowBytes with their padding @returns the error code, or 0 */
  received(chunk: Buffer, flowBytes: number): number {
    if (!this.#body || !this.#window || this.#body.isComplete) return errorCode.streamClosed
    if (!this.#window.take(flowBytes)) return errorCode.flowControlError
    this.#receivedBytes += chunk.length
    if (this.#announcedBytes !== undefined && this.#receivedBytes > this.#announcedBytes) return errorCode.protocolError
    if (chunk.length > 0) this.#body.arrived(chunk)
    return 0
  }

  /** Called at the end of the body. @returns the error code, or 0 */
  receivedAll(): number {
    if (!this.#body || this.#body.isComplete) return errorCode.streamClosed
    if (this.#announcedBytes !== undefined && this.#receivedBytes !== this.#announcedBytes) return errorCode.protocolError
    this.#body.completed()
    return 0
  }

  /** The handler read so many bytes of the body. @returns the increment of a WINDOW_UPDATE */
  taken(bytes: number): number {
    return this.isRemoteEnded || this.isClosed ? 0 : (this.#window?.give(bytes) ?? 0)
  }

  start(status: number, headers: HeaderMap, flush?: boolean): void {
    if (this.isClosed || this.#hasStarted) return
    const closes = headers.connection === 'close'
    if (closes) delete headers.connection
    this.sending.head = this.#owner.block(status, headers)
    this.#hasStarted = true
    // HTTP/1.1's `connection: close` is a GOAWAY here: open streams are finished.
    if (closes) this.#owner.endGracefully()
    if (status === tooManyRequests) this.#owner.toldToWait()
    if (flush) this.#owner.ready(this)
  }

  write(chunk: Uint8Array): boolean {
    if (this.isClosed) return true
    this.sending.add(chunk)
    this.#owner.ready(this)
    return this.sending.bytes < highWaterBytes
  }

  drained(): Promise<void> {
    if (this.isClosed || this.sending.bytes === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiting ??= []
      this.#waiting.push(resolve)
    })
  }

  end(chunk?: Uint8Array): void {
    if (this.isClosed || this.isAnswered) return
    if (chunk) this.sending.add(chunk)
    this.sending.isEnding = true
    this.isAnswered = true
    this.#owner.answered()
    this.#owner.ready(this)
  }

  /** Answers 431: the headers are too large. */
  refuseHeaders(): void {
    this.start(431, { 'content-length': '0' })
    this.end()
  }

  /** The pieces are not copied before they are sent, so queued ones take no extra memory. */
  endWith(pieces: Pieces): undefined {
    if (!this.isClosed) this.sending.addAll(pieces)
    this.end()
  }

  abort(): void {
    this.#owner.reset(this, errorCode.internalError)
  }

  /** A Writable for piping; created on first use, since few answers need it. */
  get stream(): Writable {
    this.#pipe ??= new Writable({
      write: (chunk: Uint8Array, _encoding, done) => {
        if (this.write(chunk)) done()
        else void this.drained().then(() => done())
      },
      final: (done) => {
        this.end()
        done()
      },
      destroy: (error, done) => {
        if (!this.isAnswered) this.abort()
        done(error)
      },
    })
    return this.#pipe
  }

  /** Called when the queue is empty. */
  emptied(): void {
    const waiting = this.#waiting
    if (!waiting) return
    this.#waiting = undefined
    for (const one of waiting) one()
  }

  /** Called when the stream is closed in both directions, for whatever reason. */
  closed(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.cancellation.abort(connectionClosed)
    this.#body?.cut()
    this.#pipe?.destroy()
    this.sending.clear()
    this.emptied()
  }
}

/** The queued bytes of a stream. */
export class Sending {
  /** The header block, until it is sent. */
  head: string | undefined
  bytes = 0
  window = 0
  /** True after the last chunk was added. */
  isEnding = false
  /** True while the stream is in the connection's row. */
  isQueued = false
  #chunks: Uint8Array[] = []
  /** The chunk that is next, and its bytes that are sent. */
  #next = 0
  #offset = 0

  /** Changes the window, which may become negative. False: it exceeds the maximum. */
  widen(change: number): boolean {
    this.window += change
    return this.window <= largestWindow
  }

  add(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    this.#chunks.push(chunk)
    this.bytes += chunk.length
  }

  addAll(chunks: Pieces): void {
    for (const chunk of chunks) this.add(chunk)
  }

  /** Moves the next `length` bytes to their place. */
  moveTo(target: Uint8Array, at: number, length: number): void {
    const chunks = this.#chunks
    const end = at + length
    let to = at
    while (to < end) {
      const chunk = chunks[this.#next]!
      const rest = chunk.length - this.#offset
      if (rest > end - to) {
        target.set(chunk.subarray(this.#offset, this.#offset + end - to), to)
        this.#offset += end - to
        break
      }
      // For one or two bytes, such as separators in lists, a loop is faster than a copy call.
      if (rest <= 2) for (let index = 0; index < rest; index++) target[to + index] = chunk[this.#offset + index]!
      else target.set(this.#offset === 0 ? chunk : chunk.subarray(this.#offset), to)
      to += rest
      this.#offset = 0
      this.#next++
    }
    this.bytes -= length
    if (this.bytes === 0) this.#forget()
  }

  clear(): void {
    this.head = undefined
    this.bytes = 0
    this.#forget()
  }

  #forget(): void {
    this.#chunks = []
    this.#next = 0
    this.#offset = 0
  }
}
