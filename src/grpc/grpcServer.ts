/**
 * Serves gRPC on a TCP port (L1), with TLS or without. HTTP/1 requests on the same port get documents, such as health and metrics: a connection without TLS
 * is HTTP/2 when it starts with HTTP/2's preface. Upstream: etcd server/embed/serve.go.
 */
import { createServer as createHttp1, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2, type Http2Server, type Http2Session } from 'node:http2'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { messageOf } from '#base/messageOf'
import { implementationsOf, type ServiceImplementation, serveCall } from './grpcService.ts'
import { defaultKeepAlive, keepConnection, type ServerKeepAlive } from './serverKeepAlive.ts'
import { UnfinishedRequests } from './unfinishedRequests.ts'

export interface GrpcTls {
  /** PEM. */
  readonly cert: string
  readonly key: string
  /** PEM; clients must have a certificate of these authorities. Absent: clients need none. */
  readonly clientCa?: string | undefined
}

export interface GrpcDocument {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

export type DocumentHandler = (path: string) => GrpcDocument | Promise<GrpcDocument>

export interface GrpcServerOptions {
  readonly services: readonly ServiceImplementation[]
  readonly maxRequestBytes: number
  /** Answers GET requests that are no gRPC calls. */
  readonly documents: DocumentHandler
  /** Most calls in flight on one connection. */
  readonly maxConcurrentStreams: number
  /** Bytes of requests of all connections that have not arrived whole; beyond it the connection that holds the most ends. Default 256 MiB. */
  readonly maxUnfinishedBytes?: number | undefined
  readonly tls?: GrpcTls | undefined
  /** Default: gRPC's. */
  readonly keepAlive?: ServerKeepAlive | undefined
}

export interface GrpcServer {
  readonly host: string
  readonly port: number
  /** New connections see this certificate; those that there are stay. For a server that began with TLS. */
  setTls(tls: GrpcTls): void
  /** Ends every connection. */
  close(): Promise<void>
}

/** Time for a new connection to send its first bytes, a request's headers or HTTP/2's settings. */
const firstBytesMs = 5_000
/** Answers that wait on one connection. Node refuses further calls beyond it; its default of 10 MB is less than one list of an API server. */
const mostQueuedMegabytes = 1024
const defaultUnfinishedBytes = 256 * 2 ** 20
/** The kernel notices that an idle client has vanished. Upstream: etcd client/pkg/transport keepalive_listener.go. */
const tcpKeepAlive = { keepAlive: true, keepAliveInitialDelay: 30_000 }
/** Where HTTP/2 differs from every method of HTTP/1. */
const preface = Buffer.from('PRI *')

/** @throws Error when the address cannot be bound */
export async function serveGrpc(host: string, port: number, options: GrpcServerOptions): Promise<GrpcServer> {
  const sockets = new Set<Duplex>()
  const track = (socket: Duplex) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  const handler = connectionHandler(options)
  const secure = options.tls && tlsServer(options.tls, handler.take)
  const server = secure ?? createServer(tcpKeepAlive, handler.take)
  server.on('connection', track)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const { port: bound } = server.address() as AddressInfo
  return {
    host,
    port: bound,
    setTls: ({ cert, key, clientCa }) => secure?.setSecureContext({ cert, key, ca: clientCa, minVersion: 'TLSv1.2' }),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      handler.close()
      await closed
    },
  }
}

interface ConnectionHandler {
  /** Takes a connection, once it is encrypted where that is wanted. */
  take(socket: Socket): void
  /** Ends the servers behind it, which have timers. */
  close(): void
}

function connectionHandler(options: GrpcServerOptions): ConnectionHandler {
  const http1 = createHttp1({ headersTimeout: firstBytesMs, connectionsCheckingInterval: firstBytesMs }, (request, response) => {
    void answerDocument(options.documents, request, response)
  })
  // This server never listens itself. The event starts Node's check of connections, which ends those whose headers do not arrive in time.
  http1.emit('listening')
  const http2 = createHttp2({ settings: { maxConcurrentStreams: options.maxConcurrentStreams }, maxSessionMemory: mostQueuedMegabytes })
  serveCalls(http2, options)
  return {
    take: (socket) => chooseProtocol(socket, http1, http2),
    close: () => {
      http1.close()
      http2.close()
    },
  }
}

function tlsServer({ cert, key, clientCa }: GrpcTls, connected: (socket: Socket) => void) {
  const clients = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true }
  const limits = { minVersion: 'TLSv1.2', handshakeTimeout: firstBytesMs, ...tcpKeepAlive } as const
  const server = createTlsServer({ cert, key, ...clients, ...limits, ALPNProtocols: ['h2', 'http/1.1'] })
  return server.on('secureConnection', connected).on('tlsClientError', () => {})
}

function chooseProtocol(socket: Socket, http1: Server, http2: Http2Server): void {
  socket.on('error', () => {})
  socket.setNoDelay(true)
  socket.setTimeout(firstBytesMs, () => socket.destroy())
  const look = () => {
    const first = socket.read() as Buffer | null
    if (!first) return
    socket.off('readable', look)
    socket.setTimeout(0)
    socket.unshift(first)
    const isHttp2 = first.subarray(0, preface.length).equals(preface.subarray(0, first.length))
    ;(isHttp2 ? http2 : http1).emit('connection', socket)
  }
  socket.on('readable', look)
}

function serveCalls(server: Http2Server, options: GrpcServerOptions): void {
  const { maxRequestBytes, documents, keepAlive = defaultKeepAlive, maxUnfinishedBytes = defaultUnfinishedBytes } = options
  const implementations = implementationsOf(options.services)
  const unfinished = new UnfinishedRequests(maxUnfinishedBytes)
  const onSends = new WeakMap<Http2Session, () => void>()
  server.on('sessionError', () => {})
  server.on('session', (session) => {
    const timer = setTimeout(() => session.destroy(), firstBytesMs)
    for (const event of ['remoteSettings', 'close'] as const) session.once(event, () => clearTimeout(timer))
    onSends.set(session, keepConnection(session, keepAlive))
  })
  server.on('stream', (stream, headers) => {
    const onSend = stream.session && onSends.get(stream.session)
    if (headers[':method'] === 'POST') {
      void serveCall({ stream, headers, maxRequestBytes, onSend, unfinished }, implementations)
      return
    }
    stream.on('error', () => {})
    void documentFor(documents, headers[':path']).then(({ status, contentType, body }) => {
      if (stream.destroyed) return
      onSend?.()
      stream.respond({ ':status': status, 'content-type': contentType })
      stream.end(body)
    })
  })
}

async function documentFor(documents: DocumentHandler, path = '/'): Promise<GrpcDocument> {
  try {
    return await documents(path)
  } catch (error) {
    return { status: 500, contentType: 'text/plain; charset=utf-8', body: `${messageOf(error)}\n` }
  }
}

async function answerDocument(documents: DocumentHandler, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { status, contentType, body } =
    request.method === 'GET'
      ? await documentFor(documents, request.url)
      : { status: 405, contentType: 'text/plain; charset=utf-8', body: 'Method Not Allowed\n' }
  request.resume()
  response.writeHead(status, { 'content-type': contentType })
  response.end(body)
}
