/**
 * Upgraded connections, such as WebSockets (L3): bytes flow in both directions only after the backend has agreed with 101. Any other answer goes back as it
 * is. An upgrade to HTTP/2 in clear text is not passed on, because it would let a client send requests past the routes.
 */
import type { ClientRequest as BackendRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { readEarly } from '#http/earlyInput'
import { bodyOf } from './answer.ts'
import { requestTo } from './backendRequest.ts'
import { originOf, TimedOut, whenConnected } from './forward.ts'
import { requestHeaders, responseHeaders } from './headers.ts'
import type { Entrance, ProxyDeps } from './proxyDeps.ts'
import { type Destination, destinationOf } from './target.ts'

interface UpgradeRequest {
  readonly entrance: Entrance
  readonly request: IncomingMessage
  readonly socket: Socket
  /** Bytes that came behind the request. */
  readonly head: Buffer
}

/** Serves one request with an Upgrade header. @param ignore gets the connection with all bytes of a request that is to be served as if it had none */
export function serveUpgrade(deps: ProxyDeps, upgrade: UpgradeRequest, ignore: (socket: Socket, unread: Buffer) => void): void {
  const { request, socket, head } = upgrade
  socket.on('error', () => socket.destroy())
  // The server may ignore an upgrade: RFC 9110 section 7.8.
  if (/h2c|http/i.test(request.headers.upgrade ?? '') || request.method !== 'GET') ignore(socket, Buffer.concat([headOf(request), head]))
  else if (hasBody(request)) refuse(socket, 400)
  else {
    const destination = destinationOf(request, upgrade.entrance, deps)
    if (!('backend' in destination)) refuse(socket, destination.status, destination.headers)
    else openTunnel(deps, upgrade, destination)
  }
}

function openTunnel(deps: ProxyDeps, { entrance, request, socket, head }: UpgradeRequest, destination: Destination): void {
  const { backend, target, route } = destination
  const protocols = request.headers.upgrade ?? ''
  const endpoint = backend.pick()
  if (!endpoint) {
    refuse(socket, 503)
    return
  }
  const headers = [
    ...requestHeaders(request.rawHeaders, originOf(entrance, request, destination), 'none', route.requestHeaders),
    'Connection',
    'Upgrade',
    'Upgrade',
    protocols,
  ]
  let outgoing: BackendRequest
  try {
    outgoing = requestTo(deps, endpoint, destination.tls, { method: 'GET', path: target.url, headers, isFresh: true })
  } catch {
    refuse(socket, 400)
    return
  }
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
    incoming.on('error', () => socket.destroy())
    const headers = [...responseHeaders(incoming.rawHeaders, route.responseHeaders), 'Connection', 'close']
    if (!areHeaders(headers)) {
      refuse(socket, 502)
      return
    }
    writeHead(socket, incoming, headers)
    incoming.pipe(socket)
  })
  outgoing.once('upgrade', (incoming, connection, rest) => {
    const upgraded = ['Connection', 'Upgrade', 'Upgrade', incoming.headers.upgrade ?? protocols]
    const headers = [...responseHeaders(incoming.rawHeaders, route.responseHeaders), ...upgraded]
    if (!areHeaders(headers)) {
      connection.destroy()
      refuse(socket, 502)
      return
    }
    deps.metrics.requests(101).inc()
    writeHead(socket, incoming, headers)
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

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Names and values in turn. A line break would end the header: what comes behind it would be an answer of the route's author. */
function areHeaders(headers: readonly string[]): boolean {
  return !headers.some((part) => /[\r\n\0]/.test(part))
}

/** A request's head, as the client sent it. */
function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  return headBytes(`${method} ${url} HTTP/${httpVersion}`, rawHeaders)
}

function writeHead(socket: Duplex, { statusCode, statusMessage }: Pick<IncomingMessage, 'statusCode' | 'statusMessage'>, headers: readonly string[]): void {
  socket.write(headBytes(`HTTP/1.1 ${statusCode} ${statusMessage ?? ''}`, headers))
}

function headBytes(first: string, headers: readonly string[]): Buffer {
  const lines = [first]
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** Answers what has no response object; the connection ends. */
export function refuse(socket: Duplex, status: number, more: readonly string[] = []): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = bodyOf(status)
  const head = ['content-type: text/plain; charset=utf-8', `content-length: ${Buffer.byteLength(body)}`, 'connection: close']
  const headers = [...head.flatMap((line) => line.split(': ')), ...more]
  writeHead(socket, { statusCode: status }, headers)
  socket.end(body)
}
