/**
 * Speaks CRI v1 and containerd's events over a unix socket (L1). One connection, thin methods, no policy: the kubelet's runtime/ decides.
 * Upstream: k8s.io/cri-client (v1.36).
 */
import { type Tracer, traced, traceHeaders } from '#base/traceContext'
import type * as cri from './criTypes.ts'
import { connectGrpc, type GrpcConnection } from './grpcConnection.ts'
import { GrpcError } from './grpcError.ts'
import { containerdEventsProto } from './proto/containerdEvents.ts'
import { criProto } from './proto/cri.ts'
import { loadService, type ServiceMethod } from './protoMessage.ts'

export interface CriCallOptions {
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** The process of a container or sandbox has ended and is taken care of. */
export interface ContainerdEvent {
  readonly containerId: string
}

export interface CriClient {
  /** Calls a method of RuntimeService or ImageService. */
  call<Response>(service: 'RuntimeService' | 'ImageService', method: string, request: object, options?: CriCallOptions): Promise<Response>
  /**
   * What ends in the Kubernetes namespace, until aborted or the connection breaks (which throws). Of containerd's events the last about a task: at its exit
   * containerd's own CRI does not know of it yet, and processes of exec exit as well.
   */
  events(signal: AbortSignal): AsyncIterable<ContainerdEvent>
  close(): void
}

const defaultTimeoutMs = 120_000

/**
 * @param socket path of containerd's socket. The connection is opened lazily and re-opened by itself.
 * @param requestTimeoutMs of calls that name no time of their own
 * @param tracer makes a span of each call, whose context the runtime gets
 */
export function connectCri(socket: string, requestTimeoutMs = defaultTimeoutMs, tracer?: Tracer): CriClient {
  const connection = connectGrpc(`unix:${socket}`)
  const services = {
    RuntimeService: loadService(criProto, 'runtime.v1.RuntimeService'),
    ImageService: loadService(criProto, 'runtime.v1.ImageService'),
  }
  return {
    call: async (service, name, request, { timeoutMs = requestTimeoutMs, signal } = {}) => {
      const method = services[service].get(name)
      if (!method) throw new GrpcError('UNIMPLEMENTED', `no method ${service}/${name}`)
      const call = async () => {
        const options = { timeoutMs, signal, metadata: traceHeaders(tracer) }
        return method.response.decode(await connection.unary(method.path, method.request.encode(request), options)) as never
      }
      return traced(tracer, { name: method.path.slice(1), kind: 'client' }, call)
    },
    events: (signal) => containerdEvents(connection, signal),
    close: () => connection.close(),
  }
}

async function* containerdEvents(connection: GrpcConnection, signal: AbortSignal): AsyncGenerator<ContainerdEvent> {
  const subscribe = loadService(containerdEventsProto, 'containerd.services.events.v1.Events').get('Subscribe') as ServiceMethod
  const request = subscribe.request.encode({ filters: ['namespace==k8s.io,topic=="/tasks/delete"'] })
  for await (const message of connection.stream(subscribe.path, request, { signal })) {
    const { event } = subscribe.response.decode(message) as { event: { value: ContainerdEvent } }
    yield event.value
  }
}

/** A request's environment travels as bytes. */
export function encodeContainerConfig(config: cri.ContainerConfig): object {
  return { ...config, envs: config.envs.map(({ key, value }) => ({ key, value: Buffer.from(value) })) }
}
