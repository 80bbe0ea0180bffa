/** A TCP proxy on loopback for tests of peers that vanish: once cut, it forwards nothing more and ends no connection, like a network that drops packets. */
import { once } from 'node:events'
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net'

export interface CuttableProxy {
  readonly port: number
  /** Connections that clients have opened, so far. */
  readonly connections: number
  cut(): void
  close(): void
}

/** @param port of the server, on loopback */
export async function cuttableProxy(port: number): Promise<CuttableProxy> {
  const sockets: Socket[] = []
  let [isCut, connections] = [false, 0]
  const server = createServer((socket) => {
    connections++
    const far = dial({ host: '127.0.0.1', port })
    sockets.push(socket, far)
    socket.on('data', (chunk) => void (isCut || far.write(chunk)))
    far.on('data', (chunk) => void (isCut || socket.write(chunk)))
    for (const one of [socket, far]) one.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections
    },
    cut() {
      isCut = true
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
