/**
 * Serves gRPC on a unix socket (L1): what plugins and agents on a node call the kubelet by. See ./grpcService.ts.
 */
import { chmod, rm } from 'node:fs/promises'
import { createServer, type ServerHttp2Session } from 'node:http2'
import { implementationsOf, type ServiceImplementation, serveCall } from './grpcService.ts'

export interface UnixServer {
  /** Ends every connection and removes the socket. */
  close(): Promise<void>
}

/** Longer paths do not fit into a socket's address. */
export const maxSocketPath = 107

const maxRequestBytes = 4 * 2 ** 20

/**
 * Replaces whatever is at the path, in a directory that is there. Only the owner can connect.
 * @throws Error when the path is too long or nothing can be bound there.
 */
export async function serveUnix(path: string, services: readonly ServiceImplementation[]): Promise<UnixServer> {
  if (Buffer.byteLength(path) > maxSocketPath) throw new Error(`the path of a socket has at most ${maxSocketPath} bytes, this one has more: ${path}`)
  await rm(path, { force: true })
  const implementations = implementationsOf(services)
  const sessions = new Set<ServerHttp2Session>()
  const server = createServer()
  server.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  // A client that disconnected gets no answer.
  server.on('sessionError', () => {})
  server.on('stream', (stream, headers) => void serveCall({ stream, headers, maxRequestBytes }, implementations))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  await chmod(path, 0o600)
  return {
    close: async () => {
      server.close()
      for (const session of sessions) session.destroy()
      await rm(path, { force: true })
    },
  }
}
