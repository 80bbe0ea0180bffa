/** TCP ports of the loopback address (L5): a free one, and whether one is free. */
import { once } from 'node:events'
import net from 'node:net'

export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Whether the port can be bound now; the answer may be old a moment later. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = net.createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
