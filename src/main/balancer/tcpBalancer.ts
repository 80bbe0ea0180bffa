/**
 * Spreads TCP connections over the API servers of a local cluster (L5). It passes bytes on and knows nothing of TLS: clients and servers see each other's
 * certificates. A server that is dead loses its connections at once, so that clients connect again.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '#base/clock'
import { connectTo, joinSockets } from '#host/forwarding/joinedSockets'
import { type Condition, inOrder, unknown } from './condition.ts'

/** A client whose host is gone is noticed after this long without traffic, by the kernel's probes. */
const keepAliveMs = 30_000
/** Connections beyond these are reset at once. Nodes and pods connect from other addresses than this host's users, and share another listener. */
const defaultLimits = { ofListener: 2048, ofAddress: 512, connectTimeoutMs: 2500 }

export interface BalancerLimits {
  readonly ofListener: number
  /** Except addresses of loopback. */
  readonly ofAddress: number
  /** A server that has not accepted by then is given up for this connection. */
  readonly connectTimeoutMs: number
}

export interface BalancedServer {
  readonly name: string
  readonly address: string
  readonly port: number
}

export interface TcpBalancer {
  /** Serves a port. Resolves when it listens. @throws Error when the port cannot be bound */
  listen(host: string, port: number): Promise<Server>
  /** What the checks say about a server from now on. */
  setCondition(name: string, condition: Condition): void
}

interface Backend extends BalancedServer {
  state: Condition['state']
  /** Also those that are being made. */
  open: number
  readonly connections: Set<Socket>
}

export interface TcpBalancerDeps {
  readonly clock: Clock
  /** Called when a server did not accept a connection: a check finds out why. */
  onRefused(name: string): void
}

export function createTcpBalancer(servers: readonly BalancedServer[], deps: TcpBalancerDeps, limits: BalancerLimits = defaultLimits): TcpBalancer {
  const backends = servers.map((server): Backend => ({ ...server, state: unknown.state, open: 0, connections: new Set() }))
  let turn = 0
  const accept = (client: Socket) => serve(client, inOrder(backends, turn++), deps, limits)
  return {
    listen: (host, port) => listening(host, port, accept, limits),
    setCondition: (name, { state }) => {
      const backend = backends.find((one) => one.name === name)
      if (!backend) return
      backend.state = state
      // The end of each passes on to its client.
      if (state === 'dead') for (const socket of backend.connections) socket.destroy()
    },
  }
}

function listening(host: string, port: number, accept: (client: Socket) => Promise<void>, limits: BalancerLimits): Promise<Server> {
  const byAddress = new Map<string, number>()
  const count = (address: string, change: number) => {
    const now = (byAddress.get(address) ?? 0) + change
    if (now > 0) byAddress.set(address, now)
    else byAddress.delete(address)
    return now
  }
  let all = 0
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs }, (client) => {
    client.on('error', () => {})
    const address = client.remoteAddress ?? ''
    // The users of this host share one address.
    const isLimited = !address.startsWith('127.')
    if (all >= limits.ofListener || (isLimited && (byAddress.get(address) ?? 0) >= limits.ofAddress)) {
      client.resetAndDestroy()
      return
    }
    all++
    count(address, 1)
    void accept(client).finally(() => {
      all--
      count(address, -1)
    })
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      server.on('error', () => {})
      resolve(server)
    })
  })
}

/** Connects to the first server that accepts. Resolves when both ends are closed. */
async function serve(client: Socket, order: readonly Backend[], { clock, onRefused }: TcpBalancerDeps, { connectTimeoutMs }: BalancerLimits): Promise<void> {
  for (const backend of order) {
    backend.open++
    try {
      const upstream = await connectTo(backend, connectTimeoutMs)
      if (client.destroyed) {
        upstream?.destroy()
        return
      }
      if (!upstream) {
        onRefused(backend.name)
        continue
      }
      upstream.setKeepAlive(true, keepAliveMs)
      backend.connections.add(upstream)
      await joinSockets(clock, client, upstream).finally(() => backend.connections.delete(upstream))
      return
    } finally {
      backend.open--
    }
  }
  client.resetAndDestroy()
}
