/**
 * Calls a gRPC service behind a unix socket (L1): one connection, which is opened lazily and again by itself; calls wait for the service to come.
 * Upstream: k8s.io/kms/pkg/util, the dialing of pkg/serviceaccount/externaljwt/plugin (v1.36).
 */
import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceClientConstructor, type ServiceError, status } from '@grpc/grpc-js'
import { loadProto } from './protoText.ts'

export interface UnixService {
  /** @param timeoutMs until then it waits for the service to come. @throws GrpcCallError */
  call<Response>(method: string, request: object, timeoutMs: number): Promise<Response>
  /** What a streaming method sends, until the service ends it or the signal fires. @throws GrpcCallError when it breaks */
  stream<Response>(method: string, request: object, signal: AbortSignal): AsyncIterable<Response>
  close(): void
}

/** A failed call, in the words and with the status name of Go's client. */
export class GrpcCallError extends Error {
  /** `Unavailable`, `DeadlineExceeded`, … */
  readonly grpcStatus: string

  constructor({ code, details }: ServiceError) {
    const grpcStatus = goName(status[code] ?? 'UNKNOWN')
    super(`rpc error: code = ${grpcStatus} desc = ${details}`)
    this.name = 'GrpcCallError'
    this.grpcStatus = grpcStatus
  }
}

function goName(name: string): string {
  if (name === 'CANCELLED') return 'Canceled'
  return name
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('')
}

type Method = (request: object, metadata: Metadata, options: { deadline: number }, done: (error: ServiceError | null, response: never) => void) => void

interface ServerStream<Response> extends AsyncIterable<Response> {
  cancel(): void
}

type StreamMethod<Response> = (request: object, metadata: Metadata) => ServerStream<Response>

const loaderOptions = { longs: Number, enums: String, defaults: true, bytes: Buffer } as const

/** The loaded service of that name: `package.Service`. */
export function loadService(proto: string, service: string): ServiceClientConstructor {
  let node: unknown = loadPackageDefinition(loadProto(proto, loaderOptions))
  for (const part of service.split('.')) node = (node as Record<string, unknown> | undefined)?.[part]
  if (!node) throw new Error(`the service description has no ${service}`)
  return node as ServiceClientConstructor
}

/**
 * @param proto the service's description, in the notation of ./protoText.ts
 * @param service its package and name: `v2.KeyManagementService`
 * @param target `unix:/path`, or `unix-abstract:name`
 */
export function connectUnixService(proto: string, service: string, target: string): UnixService {
  const Service = loadService(proto, service)
  const options = { 'grpc.default_authority': 'localhost', 'grpc.initial_reconnect_backoff_ms': 200, 'grpc.max_reconnect_backoff_ms': 5_000 }
  const client = new Service(target, credentials.createInsecure(), options)
  return {
    call: (method, request, timeoutMs) =>
      new Promise((resolve, reject) => {
        const unary = (client as unknown as Record<string, Method>)[method] as Method
        unary.call(client, request, new Metadata({ waitForReady: true }), { deadline: Date.now() + timeoutMs }, (error, response) =>
          error ? reject(new GrpcCallError(error)) : resolve(response),
        )
      }),
    stream: (method, request, signal) => serverStream(client, method, request, signal),
    close: () => client.close(),
  }
}

async function* serverStream<Response>(client: Client, method: string, request: object, signal: AbortSignal): AsyncGenerator<Response> {
  if (signal.aborted) return
  const start = (client as unknown as Record<string, StreamMethod<Response>>)[method] as StreamMethod<Response>
  const stream = start.call(client, request, new Metadata({ waitForReady: true }))
  const onAbort = () => stream.cancel()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    yield* stream
  } catch (error) {
    if (!signal.aborted) throw new GrpcCallError(error as ServiceError)
  } finally {
    signal.removeEventListener('abort', onAbort)
    stream.cancel()
  }
}
