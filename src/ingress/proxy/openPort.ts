/** One listening socket of the proxy (L3). Closing drains: no new connections, then the end of those that there are, at the latest after the time to drain. */
import type { AddressInfo, Socket, Server as TcpServer } from 'node:net'
import type { ProxyDeps } from './proxyDeps.ts'

export interface ListenerOptions {
  readonly host: string
  readonly port: number
  /** The port that clients connect to. */
  readonly publicPort: number
  /** `namespace/name` of the Gateway whose routes answer; default: Ingresses do. */
  readonly gateway?: string | undefined
}

export interface Listener {
  readonly port: number
  /** Stops accepting; resolves when the last connection has ended, at the latest after the time to drain. */
  close(): Promise<void>
}

/** @param server made, but not listening yet @param sockets its connections @param endIdle called first when it closes @throws Error when the port cannot be had */
export async function openPort(
  deps: ProxyDeps,
  { host, port }: ListenerOptions,
  server: TcpServer,
  sockets: ReadonlySet<Socket>,
  endIdle: () => void,
): Promise<Listener> {
  server.maxConnections = deps.limits.maxConnections
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, backlog: 1024 }, resolve)
  })
  server.removeAllListeners('error')
  server.on('error', (error) => deps.log.error(error, 'A listening socket failed'))
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      endIdle()
      const late = deps.clock.timer(deps.limits.drainMs, () => {
        for (const socket of sockets) socket.destroy()
      })
      await closed
      late.cancel()
    },
  }
}

/** Keeps a connection among those that the end of its port closes. */
export function keepSocket(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
  socket.on('error', () => socket.destroy())
  socket.setNoDelay(true)
}
