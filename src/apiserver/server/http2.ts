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
import { Cancellation } from '../cancellation.ts'
import { connectionClosed, type ExchangeDeps, serve } from './exchange.ts'
import { plainHeaders } from './headers.ts'
import type { Arrived, Peer } from './incoming.ts'
import { ResetBudget } from './resetBudget.ts'
import { drained, type HeaderMap, type Outgoing } from './respond.ts'

export function http2Server(deps: ExchangeDeps): Http2Server {
  const server = createServer({
    maxSessionMemory: 1000,
    maxSettings: 32,
    settings: { maxConcurrentStreams: 1000, initialWindowSize: 1024 * 1024, enableConnectProtocol: false },
  })
  server.on('sessionError', () => undefined)
  server.on('session', (session: ServerHttp2Session) => {
    const onReset = resetCounter(session, deps)
    session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw?: readonly string[]) => {
      const peer = deps.peerOf(session.socket as TLSSocket | undefined)
      const exchange = new Http2Exchange(stream, plainHeaders(headers, raw), headers, peer, onReset)
      void serve(deps, exchange, exchange)
    })
  })
  return server
}

function resetCounter(session: ServerHttp2Session, { clock }: ExchangeDeps): () => void {
  const budget = new ResetBudget(clock.monotonicMs())
  return () => {
    const verdict = budget.take(clock.monotonicMs())
    if (verdict === 'cut') session.destroy()
    else if (verdict === 'endGracefully' && !session.closed) session.close()
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

  constructor(stream: ServerHttp2Stream, headers: Arrived['headers'], pseudo: IncomingHttpHeaders, peer: Peer, onReset: () => void) {
    this.stream = stream
    this.method = String(pseudo[':method'] ?? 'GET')
    this.url = String(pseudo[':path'] ?? '/')
    this.headers = headers
    this.hasBody = !stream.endAfterHeaders
    this.peer = peer
    const gone = () => this.cancellation.abort(connectionClosed)
    stream.on('close', () => {
      gone()
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) onReset()
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
    if (!this.stream.destroyed) this.stream.end(chunk)
  }

  abort(): void {
    this.stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  }
}
