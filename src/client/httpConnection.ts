/**
 * Connections to one server (L2): HTTP/2 sessions that all calls share, or HTTP/1.1 where the server speaks nothing newer. A session is
 * opened when first needed, replaced when it breaks, and given up when pings go unanswered: a silent peer is noticed within 25 s.
 * Upstream: golang.org/x/net/http2 with ReadIdleTimeout 30 s and PingTimeout 15 s, as client-go sets them up.
 */
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import tls from 'node:tls'
import type { Clock, Timer } from '#base/clock'

export interface TlsOptions {
  /** PEM; the platform's roots when absent. */
  readonly ca?: string | Buffer | undefined
  readonly cert?: string | Buffer | undefined
  readonly key?: string | Buffer | undefined
  /** The name that the server's certificate must have, when it is not the URL's host. */
  readonly serverName?: string | undefined
  readonly insecureSkipVerify?: boolean | undefined
  /** Connect through this proxy: http, https or socks5. */
  readonly proxyUrl?: string | undefined
  /** Called when a TLS handshake has succeeded: how long connecting and it took, and with which protocol and cipher it ended. */
  readonly onHandshake?: ((durationMs: number, result: string) => void) | undefined
}

export interface HttpCall {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Buffer | undefined
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: Readable
}

/** What came of a call that asked for another protocol. `socket`: the server speaks it from `head` on; absent: it answered as usual. */
export interface UpgradeAnswer extends HttpAnswer {
  readonly socket?: Duplex | undefined
  readonly head: Buffer
}

export interface HttpConnection {
  /** Sends a call with `connection: upgrade` on an HTTP/1.1 connection of its own. @throws ConnectionError when no answer came. */
  upgrade(call: HttpCall, signal: AbortSignal | undefined): Promise<UpgradeAnswer>
  /**
   * Sends a call and resolves with the head of the answer. Aborting cancels the call, or its body later.
   * @throws ConnectionError when no answer came.
   */
  send(call: HttpCall, signal: AbortSignal | undefined): Promise<HttpAnswer>
  /** Breaks all connections: later calls open new ones with the certificate that is current then. */
  reset(): void
  close(): Promise<void>
}

/** No answer came. `unsent`: the server surely did not act on the call. */
export class ConnectionError extends Error {
  readonly unsent: boolean
  constructor(message: string, unsent: boolean, cause: unknown) {
    super(message, { cause })
    this.name = 'ConnectionError'
    this.unsent = unsent
  }
}

const pingEveryMs = 15_000
const pingTimeoutMs = 10_000
const connectTimeoutMs = 30_000

export function createHttpConnection(server: URL, options: TlsOptions, clock: Clock): HttpConnection {
  return new Connection(server, options, clock)
}

interface Session {
  readonly http2: http2.ClientHttp2Session
  streams: number
  timer: Timer | undefined
}

/** Streams that are assumed to be allowed until the server's settings arrive, which may be after the handshake. Upstream: x/net/http2 initialMaxConcurrentStreams. */
const initialStreamLimit = 100

class Connection implements HttpConnection {
  readonly #server: URL
  readonly #clock: Clock
  readonly #tls: TlsOptions
  #agent: http.Agent
  readonly #sessions = new Set<Session>()
  #opening: Promise<void> | undefined
  #http1: boolean
  /** Grows with each reset: a session that was being opened meanwhile is not taken. */
  #generation = 0
  /** Streams that the server allows at once in a session, as it last said. */
  #streamLimit = initialStreamLimit

  constructor(server: URL, options: TlsOptions, clock: Clock) {
    this.#server = server
    this.#clock = clock
    this.#http1 = server.protocol === 'http:'
    this.#tls = options
    this.#agent = this.#makeAgent()
  }

  #makeAgent(): http.Agent {
    const plain = this.#server.protocol === 'http:'
    const agent = plain ? new http.Agent({ keepAlive: true }) : new https.Agent({ keepAlive: true })
    if (this.#tls.proxyUrl === undefined) return agent
    const tunneled = async () => {
      const socket = await this.#tunnel()
      return plain ? socket : tls.connect({ ...this.#secure(), socket })
    }
    agent.createConnection = (_, made) => {
      tunneled().then(
        (socket) => made?.(null, socket as Socket),
        (error: Error) => made?.(error, undefined as never),
      )
      return undefined
    }
    return agent
  }

  /** Whatever carries the bytes: the network, or a proxy. */
  async #tunnel(): Promise<Socket | undefined> {
    const { proxyUrl } = this.#tls
    if (proxyUrl === undefined) return undefined
    const { openTunnel } = await import('./proxyTunnel.ts')
    return openTunnel(new URL(proxyUrl), this.#host(), this.#port())
  }

  #host(): string {
    return this.#server.hostname.replace(/^\[|\]$/g, '')
  }

  #port(): number {
    return Number(this.#server.port || (this.#server.protocol === 'http:' ? 80 : 443))
  }

  /** Asked for every connection: certificates may have been renewed since the last one. */
  #secure(): tls.ConnectionOptions {
    const { ca, cert, key, insecureSkipVerify, serverName } = this.#tls
    const name = serverName ?? (isName(this.#server.hostname) ? this.#server.hostname : undefined)
    return {
      ...(ca ? { ca } : {}),
      ...(cert ? { cert } : {}),
      ...(key ? { key } : {}),
      ...(insecureSkipVerify ? { rejectUnauthorized: false } : {}),
      ...(name ? { servername: name } : {}),
    }
  }

  async send(call: HttpCall, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    for (;;) {
      signal?.throwIfAborted()
      if (this.#http1) return this.#sendHttp1(call, signal)
      // No await between finding a free stream and taking it: when many calls wait for one session, some need another.
      const session = this.#sessionWithRoom()
      if (session) return this.#sendHttp2(session, call, signal)
      this.#opening ??= this.#open().finally(() => {
        this.#opening = undefined
      })
      await this.#opening
    }
  }

  reset(): void {
    this.#generation++
    this.#agent.destroy()
    this.#agent = this.#makeAgent()
    for (const { http2: session } of [...this.#sessions]) session.destroy(new Error('the client certificate has changed'))
  }

  async close(): Promise<void> {
    this.#agent.destroy()
    const closing = [...this.#sessions].map(
      ({ http2: session }) =>
        new Promise<void>((resolve) => {
          if (session.destroyed) return resolve()
          session.once('close', () => resolve())
          session.destroy()
        }),
    )
    await Promise.all(closing)
  }

  /** Watches hold their stream for long, so a full session is normal. */
  #sessionWithRoom(): Session | undefined {
    for (const session of this.#sessions) {
      if (!session.http2.closed && !session.http2.destroyed && session.streams < this.#streamLimit) return session
    }
    return undefined
  }

  /** Adds a session, or finds out that the server speaks HTTP/1.1 only. */
  async #open(): Promise<void> {
    const tunnel = await this.#tunnel().catch((error: Error) => {
      throw new ConnectionError(`${this.#server.origin}: ${error.message}`, true, error)
    })
    const generation = this.#generation
    return new Promise((resolve, reject) => {
      const through = tunnel ? { socket: tunnel } : { host: this.#host(), port: this.#port() }
      const startedMs = this.#clock.monotonicMs()
      const socket = tls.connect({ ...this.#secure(), ...through, ALPNProtocols: ['h2', 'http/1.1'] })
      const fail = (error: Error) => {
        timer.cancel()
        socket.destroy()
        reject(new ConnectionError(`${this.#server.origin}: ${error.message}`, true, error))
      }
      const timer = this.#clock.timer(connectTimeoutMs, () => fail(new Error('timed out while connecting')))
      socket.once('error', fail)
      socket.once('secureConnect', () => {
        timer.cancel()
        socket.off('error', fail)
        socket.setNoDelay(true)
        this.#tls.onHandshake?.(this.#clock.monotonicMs() - startedMs, `${socket.getProtocol()}, ${socket.getCipher().name}`)
        if (socket.alpnProtocol !== 'h2') {
          socket.on('error', () => {})
          socket.destroy()
          this.#http1 = true
        } else if (generation === this.#generation) this.#adopt(socket)
        else socket.destroy()
        resolve()
      })
    })
  }

  #adopt(socket: tls.TLSSocket): void {
    const session: Session = {
      http2: http2.connect(this.#server.origin, { createConnection: () => socket, settings: { enablePush: false, initialWindowSize: 4 * 1024 * 1024 } }),
      streams: 0,
      timer: undefined,
    }
    this.#sessions.add(session)
    session.http2.setLocalWindowSize(16 * 1024 * 1024)
    const gone = () => {
      session.timer?.cancel()
      this.#sessions.delete(session)
    }
    session.http2.on('remoteSettings', ({ maxConcurrentStreams }) => {
      this.#streamLimit = maxConcurrentStreams ?? initialStreamLimit
    })
    // After a GOAWAY it is closed for new streams; those that it has are still watched over.
    session.http2.on('error', gone)
    session.http2.on('close', gone)
    // An idle session must not keep the process alive.
    session.http2.unref()
  }

  #begin(session: Session): void {
    if (session.streams++ > 0) return
    session.http2.ref()
    this.#armPing(session)
  }

  #end(session: Session): void {
    if (--session.streams > 0) return
    session.timer?.cancel()
    if (!session.http2.destroyed) session.http2.unref()
  }

  #armPing(session: Session): void {
    session.timer?.cancel()
    session.timer = this.#clock.timer(pingEveryMs, () => {
      session.timer = this.#clock.timer(pingTimeoutMs, () => session.http2.destroy(new Error('the server does not answer pings')))
      const sent = session.http2.destroyed || session.http2.ping(() => session.streams > 0 && this.#armPing(session))
      if (!sent) session.http2.destroy(new Error('the server cannot be pinged'))
    })
  }

  #sendHttp2(session: Session, call: HttpCall, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const { host: _, connection: __, ...headers } = call.headers
      let stream: http2.ClientHttp2Stream
      try {
        stream = session.http2.request({ ':method': call.method, ':path': call.target, ...headers }, { endStream: call.body === undefined })
      } catch (error) {
        throw new ConnectionError((error as Error).message, true, error)
      }
      this.#begin(session)
      const abort = () => stream.close(http2.constants.NGHTTP2_CANCEL)
      signal?.addEventListener('abort', abort, { once: true })
      let failure: Error | undefined
      stream.on('error', (error) => {
        failure = error
      })
      stream.once('close', () => {
        this.#end(session)
        signal?.removeEventListener('abort', abort)
        const unsent = stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM
        reject(signal?.aborted ? signal.reason : new ConnectionError(failure?.message ?? 'the connection was closed', unsent, failure))
      })
      stream.once('response', (head) => resolve({ status: Number(head[':status']), headers: head, body: stream }))
      if (call.body !== undefined) stream.end(call.body)
    })
  }

  upgrade(call: HttpCall, signal: AbortSignal | undefined): Promise<UpgradeAnswer> {
    return new Promise((resolve, reject) => {
      const request = this.#requestHttp1(call, signal, reject)
      request.once('upgrade', (answer, socket, head) => resolve({ ...headOf(answer), body: answer, socket, head }))
      request.once('response', (answer) => resolve({ ...headOf(answer), body: answer, head: Buffer.alloc(0) }))
      request.end(call.body)
    })
  }

  #sendHttp1(call: HttpCall, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const request = this.#requestHttp1(call, signal, reject)
      request.once('response', (answer) => resolve({ ...headOf(answer), body: answer }))
      request.end(call.body)
    })
  }

  #requestHttp1(call: HttpCall, signal: AbortSignal | undefined, reject: (error: unknown) => void): http.ClientRequest {
    const request = (this.#server.protocol === 'http:' ? http : https).request({
      agent: this.#agent,
      ...(this.#agent instanceof https.Agent ? this.#secure() : {}),
      host: this.#host(),
      port: this.#port(),
      method: call.method,
      path: call.target,
      headers: { ...call.headers, ...(call.body ? { 'content-length': String(call.body.length) } : {}) },
    })
    const abort = () => request.destroy(new Error('aborted'))
    signal?.addEventListener('abort', abort, { once: true })
    request.once('socket', (socket) => socket.setKeepAlive(true, pingEveryMs))
    request.on('error', (error) => reject(signal?.aborted ? signal.reason : new ConnectionError(error.message, refused(error), error)))
    request.once('close', () => signal?.removeEventListener('abort', abort))
    return request
  }
}

const headOf = ({ statusCode = 0, headers }: http.IncomingMessage) => ({ status: statusCode, headers })
const refused = (error: Error) => 'code' in error && error.code === 'ECONNREFUSED'
const isName = (host: string) => !/^\[|^\d+(\.\d+){3}$/.test(host)
