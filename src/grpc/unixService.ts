/**
 * Calls a gRPC service behind a unix socket (L1): one connection, which is opened lazily and again by itself; calls wait for the service to come.
 * Upstream: k8s.io/kms/pkg/util, the dialing of pkg/serviceaccount/externaljwt/plugin (v1.36).
 */
import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { loadProto } from './protoText.ts'

export interface UnixService {
  /** @param timeoutMs until then it waits for the service to come. @throws GrpcCallError */
  call<Response>(method: string, request: object, timeoutMs: number): Promise<Response>
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

/**
 * @param proto the service's description, in the notation of ./protoText.ts
 * @param service its package and name: `v2.KeyManagementService`
 * @param target `unix:/path`, or `unix-abstract:name`
 */
export function connectUnixService(proto: string, service: string, target: string): UnixService {
  const definition = loadPackageDefinition(loadProto(proto, { longs: Number, defaults: true, bytes: Buffer }))
  const [inPackage = '', name = ''] = service.split('.')
  const Service = (definition[inPackage] as unknown as Record<string, new (address: string, security: unknown, options: object) => Client>)[name]
  if (!Service) throw new Error(`the service description has no ${name}`)
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
    close: () => client.close(),
  }
}
