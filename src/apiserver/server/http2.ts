/**
 * HTTP/2 (L3) by node's stream API, which is the fast one. What a stream needs is one object with shared methods: nothing is made per
 * stream that not every request uses.
 */
import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '#base/clock'
import { Cancellation } from '../cancellation.ts'
import { connectionClosed, type ExchangeDeps, serve } from './exchange.ts'
import { plainHeaders } from './headers.ts'
import type { Arrived, Peer } from './incoming.ts'
import { ResetBudget } from './resetBudget.ts'
import { drained, type HeaderMap, type Outgoing } from './respond.ts'

/** `idleMs`: a connection without requests is let go of after that time. */
export function http2Server(deps: ExchangeDeps, idleMs: number): Http2Server {
  const server = createServer({
    maxSessionMemory: 1000,
    maxSettings: 32,
    settings: { maxConcurrentStreams: 1000, initialWindowSize: 1024 * 1024, enableConnectProtocol: false },
  })
  server.on('sessionError', () => undefined)
  server.on('session', (session: ServerHttp2Session) => {
    const care = new SessionCare(session, deps.clock, idleMs)
    session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw?: readonly string[]) => {
      const peer = deps.peerOf(session.socket as TLSSocket | undefined)
      const exchange = new Http2Exchange(stream, plainHeaders(headers, raw), headers, peer, care)
      void serve(deps, exchange, exchange)
    })
  })
  return server
}

/** What a connection needs beside its streams. */
class SessionCare {
  readonly #session: ServerHttp2Session
  readonly #clock: Clock
  readonly #budget: ResetBudget
  #open = 0
  #served = 0

  constructor(session: ServerHttp2Session, clock: Clock, idleMs: number) {
    this.#session = session
    this.#clock = clock
    this.#budget = new ResetBudget(clock.monotonicMs())
    this.#watchIdleness(idleMs)
  }

  opened(): void {
    this.#open++
    this.#served++
  }

  /** The whole answer is handed over; the stream may stay open until the client has read it. */
  answered(): void {
    this.#open--
  }

  closed(rstCode: number | undefined, wasAnswered: boolean): void {
    if (!wasAnswered) this.#open--
    if (rstCode === constants.NGHTTP2_NO_ERROR) return
    const verdict = this.#budget.take(this.#clock.monotonicMs())
    if (verdict === 'cut') this.#session.destroy()
    else if (verdict === 'endGracefully' && !this.#session.closed) this.#session.close()
  }

  /**
   * Lets go of a connection without a request, and without an answer that still moves, for one whole period; at latest after two. That is also the end of those on which the client broke
   * the protocol or left during the handshake: the library may stop reading them without closing them.
   */
  #watchIdleness(idleMs: number): void {
    let seen = this.#progress()
    const look = () => {
      if (this.#open === 0 && this.#progress() === seen) this.#session.destroy()
      else {
        seen = this.#progress()
        timer = this.#clock.timer(idleMs, look)
      }
    }
    let timer = this.#clock.timer(idleMs, look)
    this.#session.on('close', () => timer.cancel())
  }

  #progress(): number {
    return this.#served + (this.#session.destroyed ? 0 : this.#session.socket.bytesWritten)
  }
}

class Http2Exchange implements Arrived, Outgoing {
  readonly method: string
  readonly url: string
  readonly headers: Arrived['headers']
  readonly hasBody: boolean
  readonly peer: Peer
  readonly cancellation = new Cancellation()
  readonly isHttp2 = true
  readonly stream: ServerHttp2Stream
  readonly #care: SessionCare
  #answered = false

  constructor(stream: ServerHttp2Stream, headers: Arrived['headers'], pseudo: IncomingHttpHeaders, peer: Peer, care: SessionCare) {
    this.stream = stream
    this.method = String(pseudo[':method'] ?? 'GET')
    this.url = String(pseudo[':path'] ?? '/')
    this.headers = headers
    this.hasBody = !stream.endAfterHeaders
    this.peer = peer
    this.#care = care
    care.opened()
    const gone = () => this.cancellation.abort(connectionClosed)
    stream.on('close', () => {
      gone()
      care.closed(stream.rstCode, this.#answered)
    })
    stream.on('error', gone)
  }

  get body(): ServerHttp2Stream {
    return this.stream
  }

  start(status: number, headers: HeaderMap): void {
    const { stream } = this
    if (stream.destroyed || stream.headersSent) return
    const closes = headers.connection === 'close'
    if (closes) delete headers.connection
    headers[':status'] = String(status)
    stream.respond(headers as OutgoingHttpHeaders)
    // What HTTP/1.1 says in a header is a GOAWAY here: streams under way go on.
    if (closes && stream.session?.closed === false) stream.session.close()
  }

  write(chunk: Uint8Array): boolean {
    return this.stream.destroyed || this.stream.write(chunk)
  }

  drained(): Promise<void> {
    return drained(this.stream, this.cancellation)
  }

  end(chunk?: Uint8Array): void {
    if (this.stream.destroyed) return
    if (!this.#answered) this.#care.answered()
    this.#answered = true
    this.stream.end(chunk)
  }

  abort(): void {
    this.stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  }
}
