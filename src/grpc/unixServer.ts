/**
 * Serves gRPC on a unix socket (L1): what plugins and agents on a node call the kubelet by. Handlers answer a request or throw; a GrpcRefusal
 * says with which status.
 */
import { chmod, mkdir, rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { dirname } from 'node:path'
import { messageOf } from '#base/messageOf'
import { GrpcError, type StatusName, statusNames } from './grpcError.ts'
import { contentType, encodeMessage, FrameReader, frame } from './grpcWire.ts'
import { loadService, type ServiceMethod } from './protoMessage.ts'

/** A call that is answered with an error. */
export class GrpcRefusal extends Error {
  readonly code: StatusName

  constructor(code: StatusName, message: string) {
    super(message)
    this.name = 'GrpcRefusal'
    this.code = code
  }
}

export interface UnixServiceImplementation {
  readonly proto: string
  /** Its package and name. */
  readonly service: string
  readonly methods: Readonly<Record<string, (request: never) => object | Promise<object>>>
}

export interface UnixServer {
  /** Ends every connection and removes the socket. */
  close(): Promise<void>
}

/** Longer paths do not fit into a socket's address. */
export const maxSocketPath = 107

const maxRequestBytes = 4 * 2 ** 20

interface Implementation {
  readonly method: ServiceMethod
  readonly answer: (request: never) => object | Promise<object>
}

/**
 * Replaces whatever is at the path. Only the owner can connect.
 * @throws Error when the path is too long or nothing can be bound there.
 */
export async function serveUnix(path: string, services: readonly UnixServiceImplementation[]): Promise<UnixServer> {
  if (Buffer.byteLength(path) > maxSocketPath) throw new Error(`the path of a socket has at most ${maxSocketPath} bytes, this one has more: ${path}`)
  await mkdir(dirname(path), { recursive: true, mode: 0o750 })
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
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    void serve(stream, headers, implementations)
  })
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

/** By the path that a request names. */
function implementationsOf(services: readonly UnixServiceImplementation[]): ReadonlyMap<string, Implementation> {
  const implementations = new Map<string, Implementation>()
  for (const { proto, service, methods } of services) {
    for (const [name, method] of loadService(proto, service)) {
      const answer = methods[name]
      if (answer) implementations.set(method.path, { method, answer })
    }
  }
  return implementations
}

async function serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, implementations: ReadonlyMap<string, Implementation>): Promise<void> {
  try {
    const path = headers[':path'] ?? ''
    const implementation = implementations.get(path)
    if (!implementation) throw new GrpcRefusal('UNIMPLEMENTED', `The server does not implement the method ${path}`)
    const { method, answer } = implementation
    const request = method.request.decode(await onlyMessage(stream))
    answerWith(stream, method.response.encode(await answer(request as never)))
  } catch (error) {
    refuse(stream, error)
  }
}

async function onlyMessage(stream: ServerHttp2Stream): Promise<Buffer> {
  const reader = new FrameReader(maxRequestBytes)
  const messages: Buffer[] = []
  // A refusal is an answer as well: it needs the stream.
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) messages.push(...reader.push(chunk as Buffer))
  const [message] = messages
  if (!message) throw new GrpcRefusal('UNIMPLEMENTED', 'the request holds no message')
  return message
}

function answerWith(stream: ServerHttp2Stream, message: Uint8Array): void {
  if (stream.destroyed) return
  stream.respond({ ':status': 200, 'content-type': contentType }, { waitForTrailers: true })
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(frame(message))
}

function refuse(stream: ServerHttp2Stream, error: unknown): void {
  if (stream.destroyed || stream.headersSent) return
  const code = error instanceof GrpcRefusal || error instanceof GrpcError ? error.code : 'UNKNOWN'
  const message = messageOf(error)
  const status = { 'grpc-status': String(statusNames.indexOf(code)), 'grpc-message': encodeMessage(message) }
  stream.respond({ ':status': 200, 'content-type': contentType, ...status }, { endStream: true })
  stream.resume()
}
