/** Clients of a port on localhost that do not read, over the forwarding of this process. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { createTcpForwarding } from '#host/forwarding/tcpForwarding'
import { createRealClock } from '#main/realClock'

async function listening(server: net.Server, host: string): Promise<number> {
  server.listen({ host, port: 0 })
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}

test('SVC-02 a node that sends to clients which do not read is held back', { timeout: 60_000 }, async () => {
  const written = new Map<net.Socket, number>()
  const chunk = Buffer.alloc(64 * 1024)
  const fill = (socket: net.Socket) => {
    do written.set(socket, (written.get(socket) ?? 0) + chunk.length)
    while (socket.write(chunk))
    socket.once('drain', () => fill(socket))
  }
  const backend = net.createServer((socket) => {
    socket.on('error', () => {})
    fill(socket)
  })
  const target = { address: '127.0.0.2', port: await listening(backend, '127.0.0.2') }
  const bound = net.createServer()
  const port = await listening(bound, '127.0.0.1')
  const forwarder = createTcpForwarding(createRealClock()).serve(bound, [target])
  const clients = Array.from({ length: 40 }, () => net.connect({ host: '127.0.0.1', port }).pause())
  await Promise.all(clients.map((client) => once(client, 'connect')))
  const total = () => [...written.values()].reduce((sum, bytes) => sum + bytes, 0)
  for (let last = -1; last !== total() || written.size < clients.length; await new Promise((resolve) => setTimeout(resolve, 200))) last = total()
  // The kernel's buffers of four sockets, and the streams between them.
  assert.ok(total() < clients.length * 16 * 2 ** 20, `${total()} bytes are on their way`)
  assert.ok(process.memoryUsage().arrayBuffers < clients.length * 2 ** 20, `${process.memoryUsage().arrayBuffers} bytes of buffers`)
  for (const client of clients) client.destroy()
  forwarder.close()
  backend.close()
  for (const socket of written.keys()) socket.destroy()
})
