/** TCP ports of the loopback address (L5): a free one, and why one cannot be had. */
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

/** Why the port cannot be bound now; undefined when it can. The answer may be old a moment later. */
export async function portObstacle(port: number): Promise<'inUse' | 'notAllowed' | undefined> {
  const server = net.createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'notAllowed' : 'inUse'
  }
  server.close()
  await once(server, 'close')
  return undefined
}
