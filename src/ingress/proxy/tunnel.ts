/**
 * Upgraded connections, such as WebSockets (L3): bytes flow in both directions only after the backend has agreed with 101. Any other answer goes back as it
 * is. An upgrade to HTTP/2 in clear text is not passed on, because it would let a client send requests past the routes.
 */
import { request as httpRequest, type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { readEarly } from '#http/earlyInput'
import { bodyOf } from './answer.ts'
import { maxAnswerHeaderBytes, originOf, serve, TimedOut, whenConnected } from './forward.ts'
import { requestHeaders, responseHeaders } from './headers.ts'
import type { Entrance, ProxyDeps } from './proxyDeps.ts'
import { type Destination, destinationOf } from './target.ts'

/** Serves one request with an Upgrade header. @param head bytes that came behind the request */
export function serveUpgrade(deps: ProxyDeps, entrance: Entrance, request: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => socket.destroy())
  const protocols = request.headers.upgrade ?? ''
  // The server may ignore an upgrade: RFC 9110 section 7.8.
  const isIgnored = /h2c|http/i.test(protocols) || request.method !== 'GET'
  if (hasBody(request)) refuse(socket, 400)
  else if (isIgnored) serveWithoutUpgrade(deps, entrance, request, socket)
  else {
    const destination = destinationOf(request, deps)
    if (typeof destination === 'number') refuse(socket, destination)
    else openTunnel(deps, { entrance, request, socket, head, protocols, destination })
  }
}

interface Upgrade {
  readonly entrance: Entrance
  readonly request: IncomingMessage
  readonly socket: Socket
  /** Bytes that came behind the request. */
  readonly head: Buffer
  readonly protocols: string
  readonly destination: Destination
}

function openTunnel(deps: ProxyDeps, { entrance, request, socket, head, protocols, destination }: Upgrade): void {
  const { backend, target } = destination
  const endpoint = backend.pick()
  if (!endpoint) {
    refuse(socket, 503)
    return
  }
  const headers = [...requestHeaders(request.rawHeaders, originOf(entrance, request, destination), 'none'), 'Connection', 'Upgrade', 'Upgrade', protocols]
  const outgoing = httpRequest({
    host: endpoint.ip,
    port: endpoint.port,
    method: 'GET',
    path: target.url,
    headers,
    agent: deps.freshAgent,
    maxHeaderSize: maxAnswerHeaderBytes,
    setHost: false,
  })
  backend.inFlight++
  deps.metrics.tunnels.add(1)
  socket.once('close', () => {
    backend.inFlight--
    deps.metrics.tunnels.add(-1)
    outgoing.destroy()
  })
  const early = readEarly(socket, () => socket.destroy())
  outgoing.once('socket', (connection) => whenConnected(deps, connection, outgoing, () => {}))
  outgoing.once('error', (error) => {
    early.end()
    refuse(socket, error instanceof TimedOut ? 504 : 502)
  })
  outgoing.once('response', (incoming) => {
    early.end()
    writeHead(socket, incoming, [...responseHeaders(incoming.rawHeaders), 'Connection', 'close'])
    incoming.on('error', () => socket.destroy())
    incoming.pipe(socket)
  })
  outgoing.once('upgrade', (incoming, connection, rest) => {
    deps.metrics.requests(101).inc()
    writeHead(socket, incoming, [...responseHeaders(incoming.rawHeaders), 'Connection', 'Upgrade', 'Upgrade', incoming.headers.upgrade ?? protocols])
    join(socket, connection as Socket, deps.limits.tunnelIdleMs)
    if (rest.length > 0) socket.write(rest)
    const first = Buffer.concat([head, early.end()])
    if (first.length > 0) connection.write(first)
    socket.pipe(connection).pipe(socket)
  })
  outgoing.end()
}

function join(client: Socket, backend: Socket, idleMs: number): void {
  const end = () => {
    client.destroy()
    backend.destroy()
  }
  for (const one of [client, backend]) {
    one.setTimeout(0)
    one.removeAllListeners('timeout')
    one.on('error', end)
    one.once('close', end)
  }
  // Bytes of either direction pass through both sockets.
  client.setTimeout(idleMs, end)
}

/** The request gets an ordinary answer on its connection, which ends with it. */
function serveWithoutUpgrade(deps: ProxyDeps, entrance: Entrance, request: IncomingMessage, socket: Socket): void {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => socket.end())
  // Without a reader, the end of the connection would not be seen.
  socket.resume()
  serve(deps, entrance, request, response)
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function writeHead(socket: Duplex, { statusCode, statusMessage }: IncomingMessage, headers: readonly string[]): void {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage ?? ''}`]
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  socket.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'))
}

/** Answers what has no response object; the connection ends. */
export function refuse(socket: Duplex, status: number): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = bodyOf(status)
  const head = ['content-type: text/plain; charset=utf-8', `content-length: ${Buffer.byteLength(body)}`, 'connection: close']
  writeHead(
    socket,
    { statusCode: status, statusMessage: '' } as IncomingMessage,
    head.flatMap((line) => line.split(': ')),
  )
  socket.end(body)
}
