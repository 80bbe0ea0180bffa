/**
 * The one TLS port (L3): HTTP/2 and HTTP/1.1 by ALPN, client certificates, upgrades, graceful shutdown. HTTP/2 uses node's stream API, which
 * is the fast one; each protocol has its own plain server behind the TLS one, so that neither's compatibility layer is in the way.
 */
import { createServer as createHttp1Server, type Server as Http1Server, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import {
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { isStatus, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { type Answer, statusOf } from '../answer.ts'
import { statusAnswer } from '../pipeline/panicRecovery.ts'
import type { Handler } from '../pipeline/stage.ts'
import type { PeerCertificate, ServerRequest } from '../request.ts'
import { encodeAnswer } from './encode.ts'
import { serverRequest } from './incoming.ts'
import { type HeaderMap, type Outgoing, respond } from './respond.ts'

export interface ListenOptions {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** PEM. `clientCa` is what client certificates are checked against. */
  readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer; readonly clientCa?: string | Buffer | undefined }
}

export interface Listener {
  readonly host: string
  readonly port: number
  /** Stops accepting; once `drained`, gives connections a short while to end by themselves, then closes every one. */
  close(drained?: Promise<void>): Promise<void>
}

/** Takes a connection over after an upgrade request. */
export type UpgradeHandler = (request: ServerRequest, socket: Duplex, head: Buffer) => Promise<void>

/** One for all: an error per request, with its stack, would be a tenth of a GET. */
const connectionClosed = new DOMException('The connection or the stream was closed', 'AbortError')
const drainMs = 2_000
const headersTimeoutMs = 30_000
const maxHeaderBytes = 256 * 1024
const idleTimeoutMs = 90_000
/** For a request to arrive completely, not for its answer. */
const requestTimeoutMs = 120_000

interface Deps {
  readonly handle: Handler
  readonly upgrade: UpgradeHandler
  readonly clock: Clock
  readonly log: Logger
}

/** Resolves when the port accepts connections; speaks HTTP/2 and HTTP/1.1 on it. */
export async function listen(deps: Deps, options: ListenOptions): Promise<Listener> {
  const http1 = http1Server(deps)
  const http2 = http2Server(deps)
  const sockets = new Set<TLSSocket>()
  const sessions = new Set<ServerHttp2Session>()
  http2.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  const tlsOptions: TlsOptions = {
    cert: options.tls.cert,
    key: options.tls.key,
    ...(options.tls.clientCa ? { ca: options.tls.clientCa } : {}),
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
    minVersion: 'TLSv1.2',
    handshakeTimeout: headersTimeoutMs,
  }
  const server = createTlsServer(tlsOptions, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    socket.setNoDelay(true)
    if (socket.alpnProtocol === 'h2') http2.emit('connection', socket)
    else http1.emit('connection', socket)
  })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, () => resolve())
  })
  server.removeAllListeners('error')
  server.on('error', (error) => deps.log.error(error, 'The listening socket failed'))
  const address = server.address() as AddressInfo
  return {
    host: address.address,
    port: address.port,
    async close(drained) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const session of sessions) session.close()
      http1.closeIdleConnections()
      await Promise.race([closed, drained])
      await Promise.race([closed, deps.clock.sleep(drainMs)])
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function http2Server(deps: Deps): Http2Server {
  const server = createHttp2Server({
    maxSessionMemory: 1000,
    maxSettings: 32,
    settings: { maxConcurrentStreams: 1000, initialWindowSize: 1024 * 1024, enableConnectProtocol: false },
  })
  server.on('sessionError', () => undefined)
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const socket = stream.session?.socket as TLSSocket | undefined
    const controller = new AbortController()
    stream.on('close', () => controller.abort(connectionClosed))
    stream.on('error', () => controller.abort(connectionClosed))
    const out: Outgoing = {
      start: (status, answerHeaders) => {
        if (stream.destroyed || stream.headersSent) return
        const { connection, ...headers } = answerHeaders
        stream.respond({ ':status': status, ...headers } as Parameters<typeof stream.respond>[0])
        // What HTTP/1.1 says in a header is a GOAWAY here: streams under way go on.
        if (connection === 'close' && stream.session?.closed === false) stream.session.close()
      },
      write: (chunk) => stream.destroyed || stream.write(chunk),
      drained: () => drained(stream, controller.signal),
      end: (chunk) => {
        if (!stream.destroyed) stream.end(chunk)
      },
      stream,
    }
    const incoming = {
      method: String(headers[':method'] ?? 'GET'),
      url: String(headers[':path'] ?? '/'),
      headers: plainHeaders(headers),
      body: stream,
      isHttp2: true,
      hasBody: !stream.endAfterHeaders,
    }
    void serve(deps, { ...incoming, ...peer(socket), signal: controller.signal }, out, () => stream.close(constants.NGHTTP2_INTERNAL_ERROR))
  })
  return server
}

function http1Server(deps: Deps): Http1Server {
  const server = createHttp1Server({
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: requestTimeoutMs,
    headersTimeout: headersTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
  })
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    else socket.destroy()
  })
  server.on('request', (message: IncomingMessage, response: ServerResponse) => {
    const controller = new AbortController()
    response.on('close', () => controller.abort(connectionClosed))
    response.on('error', () => controller.abort(connectionClosed))
    const out: Outgoing = {
      start: (status, headers, flush) => {
        if (response.headersSent) return
        response.writeHead(status, headers as Record<string, string | string[]>)
        if (flush) response.flushHeaders()
      },
      write: (chunk) => response.destroyed || response.write(chunk),
      drained: () => drained(response, controller.signal),
      end: (chunk) => {
        if (!response.destroyed) response.end(chunk)
      },
      stream: response,
    }
    const incoming = { ...http1Incoming(message), hasBody: hasBody(message) }
    void serve(deps, { ...incoming, ...peer(message.socket as TLSSocket), signal: controller.signal }, out, () => response.destroy())
  })
  server.on('upgrade', (message: IncomingMessage, socket: Duplex, head: Buffer) => {
    const controller = new AbortController()
    socket.on('close', () => controller.abort(connectionClosed))
    socket.on('error', () => controller.abort(connectionClosed))
    const incoming = { ...http1Incoming(message), hasBody: false }
    void serveUpgrade(deps, { ...incoming, ...peer(message.socket as TLSSocket), signal: controller.signal }, socket, head)
  })
  return server
}

function http1Incoming(message: IncomingMessage) {
  return { method: message.method ?? 'GET', url: message.url ?? '/', headers: message.headers, body: message, isHttp2: false }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

type Arrived = Omit<Parameters<typeof serverRequest>[0], 'trace'>

async function serve(deps: Deps, arrived: Arrived, out: Outgoing, abort: () => void): Promise<void> {
  try {
    const request = serverRequest(arrived)
    await respond(request, await deps.handle(request), out, deps.clock)
  } catch (error) {
    if (arrived.signal.aborted) return
    if (!isStatus(error)) {
      deps.log.error(error, 'Answering a request failed', { method: arrived.method, url: arrived.url })
      abort()
      return
    }
    refuse(error, out)
  }
}

/** For requests that are refused before there is a request at all. */
function refuse(error: StatusError, out: Outgoing): void {
  const body = Buffer.from(JSON.stringify(error.toStatus()))
  out.start(error.code, { 'content-type': 'application/json', 'content-length': String(body.length) })
  out.end(body)
}

async function serveUpgrade(deps: Deps, arrived: Arrived, socket: Duplex, head: Buffer): Promise<void> {
  try {
    await deps.upgrade(serverRequest(arrived), socket, head)
  } catch (error) {
    if (!isStatus(error) && !arrived.signal.aborted) deps.log.error(error, 'An upgraded request failed', { url: arrived.url })
    const answer = statusAnswer(isStatus(error) ? error : new StatusError('InternalError', 'the upgrade failed'))
    writeRawAnswer(socket, answer)
  }
}

/** The answer to an upgrade request that does not switch protocols. */
export function writeRawAnswer(socket: Duplex, answer: Answer): void {
  if (socket.destroyed || (answer.type !== 'value' && answer.type !== 'bytes' && answer.type !== 'object' && answer.type !== 'list')) {
    socket.destroy()
    return
  }
  const { contentType, bytes } = encodeAnswer(answer)
  const status = statusOf(answer)
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`, `content-type: ${contentType}`, `content-length: ${bytes.length}`, 'connection: close']
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  socket.end(bytes)
}

function peer(socket: TLSSocket | undefined): { remoteAddress: string; peerCertificate: PeerCertificate | undefined } {
  return { remoteAddress: socket?.remoteAddress ?? '', peerCertificate: socket && peerCertificateOf(socket) }
}

const peerCertificateKey = Symbol('peerCertificate')

/** Read once per connection. */
function peerCertificateOf(socket: TLSSocket & { [peerCertificateKey]?: PeerCertificate | null }): PeerCertificate | undefined {
  if (socket[peerCertificateKey] === undefined) {
    const raw = typeof socket.getPeerX509Certificate === 'function' ? socket.getPeerX509Certificate()?.raw : undefined
    const error = socket.authorizationError as Error | string | undefined
    socket[peerCertificateKey] = raw ? { raw, verified: socket.authorized, ...(error ? { verifyError: String(error) } : {}) } : null
  }
  return socket[peerCertificateKey] ?? undefined
}

function plainHeaders(headers: IncomingHttpHeaders): ServerRequest['headers'] {
  const plain: HeaderMap = {}
  for (const name in headers) {
    const value = headers[name]
    if (name.charCodeAt(0) !== 0x3a && value !== undefined) plain[name] = value
  }
  // One name for what both protocols say.
  if (headers[':authority'] !== undefined) plain.host = headers[':authority']
  return plain
}

function drained(stream: NodeJS.WritableStream, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const done = () => {
      stream.removeListener('drain', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    stream.on('drain', done)
    signal.addEventListener('abort', done, { once: true })
  })
}
