/**
 * Calls a gRPC service behind a unix socket (L1): one connection, which is opened lazily and again by itself; calls wait for the service to come.
 * Upstream: k8s.io/kms/pkg/util, the dialing of pkg/serviceaccount/externaljwt/plugin (v1.36).
 */
import { connectGrpc } from './grpcConnection.ts'
import { GrpcError } from './grpcError.ts'
import { loadService, type ServiceMethod } from './protoMessage.ts'

export interface UnixServiceOptions {
  /** Calls wait until the service is there, which is the default, or fail with UNAVAILABLE while it is not. */
  readonly waitForReady?: boolean | undefined
  /** A larger answer fails the call. Default: that of ./grpcConnection.ts. */
  readonly maxMessageBytes?: number | undefined
}

export interface UnixService {
  /**
   * @param timeoutMs until then it waits for the answer and, if so configured, for the service to come
   * @throws GrpcError in Go's words; the signal's reason when it fires
   */
  call<Response>(method: string, request: object, timeoutMs: number, signal?: AbortSignal): Promise<Response>
  /** What a streaming method sends, until the service ends it or the signal fires. @throws GrpcError in Go's words when it breaks */
  stream<Response>(method: string, request: object, signal: AbortSignal): AsyncIterable<Response>
  close(): void
}

const inGoWords = (error: unknown) => (error instanceof GrpcError ? error.inGoWords() : error)

/**
 * @param proto the service's description, in the notation of ./protoText.ts
 * @param service its package and name: `v2.KeyManagementService`
 * @param target `unix:/path`, or `unix-abstract:name`
 */
export function connectUnixService(proto: string, service: string, target: string, options: UnixServiceOptions = {}): UnixService {
  const { waitForReady = true, maxMessageBytes } = options
  const methods = loadService(proto, service)
  const connection = connectGrpc(target, { maxMessageBytes })
  const methodOf = (name: string): ServiceMethod => {
    const method = methods.get(name)
    if (!method) throw new Error(`${service} has no method ${name}`)
    return method
  }
  return {
    call: async (name, request, timeoutMs, signal) => {
      const method = methodOf(name)
      try {
        return method.response.decode(await connection.unary(method.path, method.request.encode(request), { timeoutMs, signal, waitForReady })) as never
      } catch (error) {
        throw inGoWords(error)
      }
    },
    stream: async function* (name, request, signal) {
      const method = methodOf(name)
      try {
        const messages = connection.stream(method.path, method.request.encode(request), { signal, waitForReady: true })
        for await (const message of messages) yield method.response.decode(message) as never
      } catch (error) {
        throw inGoWords(error)
      }
    },
    close: () => connection.close(),
  }
}
