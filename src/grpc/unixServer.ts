/**
 * Serves gRPC on a unix socket (L1): what plugins and agents on a node call the kubelet by. Handlers answer a request or throw; a GrpcRefusal
 * says with which status.
 */
import { chmod, mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status, type UntypedServiceImplementation } from '@grpc/grpc-js'
import { loadService } from './unixService.ts'

/** A call that is answered with an error. */
export class GrpcRefusal extends Error {
  readonly code: keyof typeof status

  constructor(code: keyof typeof status, message: string) {
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

/**
 * Replaces whatever is at the path. Only the owner can connect.
 * @throws Error when the path is too long or nothing can be bound there.
 */
export async function serveUnix(path: string, services: readonly UnixServiceImplementation[]): Promise<UnixServer> {
  if (Buffer.byteLength(path) > maxSocketPath) throw new Error(`the path of a socket has at most ${maxSocketPath} bytes, this one has more: ${path}`)
  await mkdir(dirname(path), { recursive: true, mode: 0o750 })
  await rm(path, { force: true })
  const server = new Server({ 'grpc.max_receive_message_length': 4 * 2 ** 20 })
  for (const { proto, service, methods } of services) server.addService(loadService(proto, service).service, implementation(methods))
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  )
  await chmod(path, 0o600)
  return {
    close: async () => {
      server.forceShutdown()
      await rm(path, { force: true })
    },
  }
}

function implementation(methods: UnixServiceImplementation['methods']): UntypedServiceImplementation {
  const unary = (method: (request: never) => object | Promise<object>) => (call: ServerUnaryCall<never, object>, done: sendUnaryData<object>) => {
    const refuse = (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error)
      done({ code: status[error instanceof GrpcRefusal ? error.code : 'UNKNOWN'], details: message })
    }
    void (async () => done(null, await method(call.request)))().catch(refuse)
  }
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, unary(method)])) as UntypedServiceImplementation
}
