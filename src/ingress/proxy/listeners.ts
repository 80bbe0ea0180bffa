/**
 * The proxy's ports (L3): HTTP/1.1 in clear text, and TLS with HTTP/2 or HTTP/1.1 by ALPN. Each protocol has its own server behind the TLS one. Closing
 * drains: no new connections, then the end of each connection with its last answer.
 */
import { createServer as createHttp1, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Session } from 'node:http2'
import { createServer as createTcp, type Socket, type Server as TcpServer } from 'node:net'
import { createServer as createTls, type TLSSocket } from 'node:tls'
import { serve } from './forward.ts'
import { countOf } from './headers.ts'
import { keepSocket, type Listener, type ListenerOptions, openPort } from './openPort.ts'
import type { Entrance, ProxyDeps } from './proxyDeps.ts'
import { type TlsOfListener, tlsOptions } from './tlsOptions.ts'
import { refuse, serveUpgrade } from './tunnel.ts'

const looksPerTimeout = 4
const h2Word = Buffer.from('PRI ')
const maxStreams = 128
/** MB that one HTTP/2 connection may use. */
const sessionMemory = 10

export async function listen(deps: ProxyDeps, options: ListenerOptions, tls?: TlsOfListener): Promise<Listener> {
  const entrance: Entrance = { scheme: tls ? 'https' : 'http', port: options.publicPort, gateway: options.gateway }
  const sockets = new Set<Socket>()
  const http1 = http1Servers(deps, entrance)
  const http2 = tls || options.gateway !== undefined ? http2Server(deps, entrance) : undefined
  const server: TcpServer = tls
    ? createTls({ ...tlsOptions(deps, tls), ALPNProtocols: ['h2', 'http/1.1'] }, (socket: TLSSocket) => {
        keepSocket(sockets, socket)
        if (socket.alpnProtocol === 'h2') http2?.accept(socket)
        else http1.accept(socket)
      }).on('tlsClientError', (_error, socket) => socket.destroy())
    : createTcp((socket) => {
        keepSocket(sockets, socket)
        if (http2) acceptEither(deps, socket, http1.accept, http2.accept)
        else http1.accept(socket)
      })
  return openPort(deps, options, server, sockets, () => {
    // Ends idle connections; the others end with their answers.
    http1.close()
    http2?.endGracefully()
  })
}

/** Gives a connection in clear text to the server of its protocol: HTTP/2 begins with a word that is no method of HTTP/1.1. */
function acceptEither({ clock, limits }: ProxyDeps, socket: Socket, http1: (socket: Socket) => void, http2: (socket: Socket) => void): void {
  const late = clock.timer(limits.headersTimeoutMs, () => socket.destroy())
  socket.once('close', () => late.cancel())
  socket.once('data', (first: Buffer) => {
    late.cancel()
    socket.pause()
    socket.unshift(first)
    if (first.subarray(0, h2Word.length).equals(h2Word)) http2(socket)
    else http1(socket)
    process.nextTick(() => socket.resume())
  })
}

/** One server for upgrades and requests; another one, which knows no upgrades, reads those again whose upgrade is ignored: with their bodies. */
function http1Servers(deps: ProxyDeps, entrance: Entrance) {
  const [upgrading, plain] = [http1Server(deps, entrance), http1Server(deps, entrance)]
  const ignore = (socket: Socket, unread: Buffer) => {
    socket.unshift(unread)
    plain.emit('connection', socket)
  }
  upgrading.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (countOf(request.rawHeaders, 'host') > 1) refuse(socket, 400)
    else serveUpgrade(deps, { entrance, request, socket, head }, ignore)
  })
  return {
    accept: (socket: Socket) => upgrading.emit('connection', socket),
    close: () => {
      for (const server of [upgrading, plain]) server.close()
    },
  }
}

function http1Server(deps: ProxyDeps, entrance: Entrance): Server {
  const { maxHeaderBytes, headersTimeoutMs, idleTimeoutMs } = deps.limits
  const server = createHttp1({
    maxHeaderSize: maxHeaderBytes,
    insecureHTTPParser: false,
    // Bodies may take as long as they like, as long as bytes move.
    requestTimeout: 0,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: Math.ceil(headersTimeoutMs / looksPerTimeout),
    keepAliveTimeout: idleTimeoutMs,
  })
  server.timeout = idleTimeoutMs
  // This server never listens itself. Only the event starts Node's check of connections whose headers are late.
  server.emit('listening')
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || error.code === 'ERR_HTTP_REQUEST_TIMEOUT') socket.destroy()
    else refuse(socket, error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400)
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => serve(deps, entrance, request, response))
  server.on('connect', (_request, socket) => refuse(socket, 405))
  return server
}

function http2Server(deps: ProxyDeps, entrance: Entrance) {
  const { maxHeaderBytes, idleTimeoutMs } = deps.limits
  const sessions = new Set<ServerHttp2Session>()
  const server = createHttp2({
    maxSessionMemory: sessionMemory,
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes, enablePush: false },
  })
  server.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    session.on('error', () => {})
    session.setTimeout(idleTimeoutMs, () => session.destroy())
  })
  server.on('sessionError', () => {})
  server.on('request', (request: Http2ServerRequest, response: Http2ServerResponse) => {
    // Streams that the client resets at once are not sent on: a packet may hold a thousand, after which the library ends the connection.
    void deps.clock.turn().then(() => {
      if (!request.stream.closed) serve(deps, entrance, request, response)
    })
  })
  return {
    accept: (socket: Socket) => server.emit('connection', socket),
    endGracefully: () => {
      for (const session of sessions) session.close()
    },
  }
}
