/**
 * A backend that an attacker owns: it answers upgrade requests with the test's bytes, keeps the connection, and records every byte that it receives
 * afterwards. Other requests are answered with 200, as discovery of an extension server.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createServer, type TLSSocket } from 'node:tls'

/** Proxies refuse loopback addresses, so the backend listens on an address of this host. */
export const hostAddress = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .find((one) => one.family === 'IPv4' && !one.internal)?.address

/** One upgrade request, and what came behind it on its connection. */
export interface Upgraded {
  readonly head: string
  behind: string
  /** The bytes received before the answer was written. */
  early: string
  closed: boolean
}

export interface SwitchingBackend {
  readonly port: number
  readonly upgrades: Upgraded[]
  /** From now on the answer to upgrade requests. `first` runs before it goes out. */
  answer(text: string, first?: () => Promise<unknown>): void
  /** Ends the connections that were upgraded. */
  closeUpgraded(): void
  close(): Promise<void>
}

export async function startSwitchingBackend(tls: { readonly cert: string; readonly key: string }): Promise<SwitchingBackend> {
  let answer = ''
  let before = async (): Promise<unknown> => undefined
  const upgrades: Upgraded[] = []
  const sockets = new Set<TLSSocket>()
  const switched = new Set<TLSSocket>()
  const server = createServer(tls, (socket) => {
    sockets.add(socket)
    let upgraded: Upgraded | undefined
    let received = ''
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      if (upgraded) upgraded.closed = true
    })
    socket.on('data', (chunk) => {
      if (upgraded) {
        upgraded.behind += chunk.toString('latin1')
        return
      }
      received += chunk.toString('latin1')
      for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
        const head = received.slice(0, end)
        received = received.slice(end + 4)
        if (!/^upgrade:/im.test(head)) {
          socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}')
          continue
        }
        const entry: Upgraded = { head, behind: received, early: '', closed: false }
        upgraded = entry
        switched.add(socket)
        upgrades.push(entry)
        void before().then(() => {
          entry.early = entry.behind
          socket.write(answer)
        })
        return
      }
    })
  })
  server.listen(0, hostAddress)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    upgrades,
    answer(text, first = async () => undefined) {
      answer = text
      before = first
    },
    closeUpgraded() {
      for (const socket of switched) socket.end()
      switched.clear()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
