/**
 * TLS connections that are routed by their server names (L3): the bytes pass through as they are, or TLS ends here and its content passes. What no route takes
 * is ended without an answer, as upstream's conformance suite expects. Another endpoint is tried while none has been connected to.
 */
import { connect, createServer as createTcp, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTls } from 'node:tls'
import { maxClientHelloBytes, readClientHello } from '../model/clientHello.ts'
import type { Endpoint } from '../model/endpoints.ts'
import type { BackendTls, StreamRoute } from '../model/route.ts'
import type { Backend } from './backend.ts'
import { keepSocket, type Listener, type ListenerOptions, openPort } from './openPort.ts'
import type { Entrance, ProxyDeps } from './proxyDeps.ts'
import { type TlsOfListener, tlsOptions } from './tlsOptions.ts'

const maxAttempts = 3

export function listenForStreams(deps: ProxyDeps, options: ListenerOptions, tls: TlsOfListener): Promise<Listener> {
  const entrance: Entrance = { scheme: 'https', port: options.publicPort, gateway: options.gateway }
  const sockets = new Set<Socket>()
  /** Of connections whose TLS is being ended. A TLS socket does not say which connection it came from, but has the same addresses. */
  const routes = new Map<string, StreamRoute>()
  const ending = createTls(tlsOptions(deps, tls), (socket) => {
    const route = routes.get(placeOf(socket))
    socket.on('error', () => socket.destroy())
    if (route) void tunnel(deps, socket, route)
    else socket.destroy()
  }).on('tlsClientError', (_error, socket) => socket.destroy())
  const accept = async (socket: Socket) => {
    const serverName = await serverNameOf(deps, socket)
    const route = serverName === undefined ? undefined : deps.router.stream(serverName, entrance)
    if (socket.destroyed) return
    if (!route) {
      deps.log.v(4).info('No route takes a connection', { serverName, gateway: options.gateway })
      socket.destroy()
    } else if (route.isPassthrough) await tunnel(deps, socket, route)
    else {
      const place = placeOf(socket)
      routes.set(place, route)
      socket.once('close', () => routes.delete(place))
      ending.emit('connection', socket)
    }
  }
  // A side that has sent all may still receive.
  const server = createTcp({ allowHalfOpen: true }, (socket) => {
    keepSocket(sockets, socket)
    accept(socket).catch((error) => {
      deps.log.error(error, 'A connection could not be routed', { gateway: options.gateway })
      socket.destroy()
    })
  })
  return openPort(deps, options, server, sockets, () => {})
}

const placeOf = ({ remoteAddress, remotePort, localAddress }: Socket) => `${remoteAddress} ${remotePort} ${localAddress}`

/** Undefined: the client is gone, too slow, or does not speak TLS. The bytes that it has sent are put back, for the next reader of the socket. */
function serverNameOf({ clock, limits }: ProxyDeps, socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let length = 0
    let needs = 1
    const end = (serverName: string | undefined) => {
      late.cancel()
      socket.removeListener('data', take)
      socket.removeListener('end', giveUp)
      socket.removeListener('close', giveUp)
      socket.pause()
      if (serverName !== undefined) socket.unshift(Buffer.concat(chunks))
      resolve(serverName)
    }
    const giveUp = () => end(undefined)
    const take = (chunk: Buffer) => {
      chunks.push(chunk)
      length += chunk.length
      if (length < needs) return
      const hello = readClientHello(Buffer.concat(chunks, Math.min(length, maxClientHelloBytes)))
      if (hello === 'invalid') giveUp()
      else if ('needs' in hello) needs = hello.needs
      else end(hello.serverName)
    }
    const late = clock.timer(limits.headersTimeoutMs, giveUp)
    socket.on('data', take)
    socket.once('end', giveUp)
    socket.once('close', giveUp)
  })
}

async function tunnel(deps: ProxyDeps, client: Socket, { backend: ref, isPassthrough }: StreamRoute): Promise<void> {
  const backend = deps.router.backendOf(ref)
  // What passes through is between the client and the backend.
  const tls = isPassthrough ? undefined : ref.tls
  if (tls === 'unverifiable' || backend.size === 0 || backend.inFlight >= deps.limits.maxInFlight) {
    client.destroy()
    return
  }
  backend.inFlight++
  deps.metrics.tunnels.add(1)
  client.once('close', () => {
    backend.inFlight--
    deps.metrics.tunnels.add(-1)
  })
  const connection = await connectTo(deps, backend, tls, client)
  if (connection && !client.destroyed) join(client, connection, deps.limits.tunnelIdleMs)
  else {
    connection?.destroy()
    client.destroy()
  }
}

/** Undefined: no endpoint could be connected to, or the client is gone. */
async function connectTo(deps: ProxyDeps, backend: Backend, tls: BackendTls | undefined, client: Socket): Promise<Socket | undefined> {
  const tried: Endpoint[] = []
  while (tried.length < Math.min(maxAttempts, Math.max(backend.size, 1)) && !client.destroyed) {
    const endpoint = backend.pick(tried)
    if (!endpoint) return undefined
    tried.push(endpoint)
    const connection = await dial(deps, endpoint, tls, client)
    if (connection) {
      backend.succeeded(endpoint)
      return connection
    }
    if (!client.destroyed) backend.avoid(endpoint)
  }
  return undefined
}

function dial({ clock, limits, tlsTo }: ProxyDeps, { ip, port }: Endpoint, tls: BackendTls | undefined, client: Socket): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const to = { host: ip, port, allowHalfOpen: true, noDelay: true }
    const socket = tls ? connectTls({ ...to, ...tlsTo(tls).connection }) : connect(to)
    const end = (result: Socket | undefined) => {
      late.cancel()
      client.removeListener('close', fail)
      socket.removeListener('error', fail)
      if (!result) socket.destroy()
      resolve(result)
    }
    const fail = () => end(undefined)
    const late = clock.timer(limits.connectTimeoutMs, fail)
    client.once('close', fail)
    socket.once('error', fail)
    socket.once(tls ? 'secureConnect' : 'connect', () => end(socket))
    socket.on('error', () => {})
  })
}

/** Each side ends when the other has sent all; both are cut when one of them is. */
function join(client: Socket, backend: Socket, idleMs: number): void {
  const sides = [
    [client, backend],
    [backend, client],
  ] as const
  for (const [one, other] of sides) {
    one.on('error', () => other.destroy())
    one.once('close', () => {
      // The end of a side that closed in good order has been passed on: what is still on the way to the other side arrives.
      if (!other.writableEnded) other.destroy()
    })
    one.pipe(other)
  }
  // Bytes of either direction pass through both sockets.
  client.setTimeout(idleMs, () => {
    client.destroy()
    backend.destroy()
  })
}
