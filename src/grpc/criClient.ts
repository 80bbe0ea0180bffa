/**
 * Speaks CRI v1 and containerd's events over a unix socket (L1). One connection, thin methods, no policy: the kubelet's runtime/ decides.
 * Upstream: k8s.io/cri-client (v1.36).
 */
import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { CriError } from './criError.ts'
import type * as cri from './criTypes.ts'
import { containerdEventsProto } from './proto/containerdEvents.ts'
import { criProto } from './proto/cri.ts'
import { loadProto } from './protoText.ts'

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

const loaderOptions = { longs: Number, enums: String, defaults: true, oneofs: true, bytes: Buffer } as const
const channelOptions = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1, 'grpc.initial_reconnect_backoff_ms': 200 }
const defaultTimeoutMs = 120_000

type UnaryMethod = (
  request: object,
  metadata: Metadata,
  options: { deadline: number },
  done: (error: ServiceError | null, response: unknown) => void,
) => {
  cancel(): void
}

interface EventStream extends AsyncIterable<{ event: { value: ContainerdEvent } }> {
  cancel(): void
  on(event: 'error', listener: (error: Error) => void): void
}

/** @param socket path of containerd's socket. The connection is opened lazily and re-opened by itself. */
export function connectCri(socket: string): CriClient {
  const target = `unix://${socket}`
  const load = (proto: string, service: string): Client => {
    let node: unknown = loadPackageDefinition(loadProto(proto, loaderOptions))
    for (const part of service.split('.')) node = (node as Record<string, unknown>)[part]
    const Constructor = node as new (address: string, security: unknown, options: object) => Client
    return new Constructor(target, credentials.createInsecure(), channelOptions)
  }
  const clients = {
    RuntimeService: load(criProto, 'runtime.v1.RuntimeService'),
    ImageService: load(criProto, 'runtime.v1.ImageService'),
    Events: load(containerdEventsProto, 'containerd.services.events.v1.Events'),
  }
  return {
    call: (service, method, request, options = {}) =>
      new Promise((resolve, reject) => {
        if (options.signal?.aborted) return reject(options.signal.reason)
        const client = clients[service]
        const unary = (client as unknown as Record<string, UnaryMethod>)[method]
        if (!unary) return reject(new CriError('UNIMPLEMENTED', `no method ${service}/${method}`))
        const deadline = Date.now() + (options.timeoutMs ?? defaultTimeoutMs)
        const onAbort = () => call.cancel()
        const call = unary.call(client, request, new Metadata(), { deadline }, (error, response) => {
          options.signal?.removeEventListener('abort', onAbort)
          if (!error) return resolve(response as never)
          reject(options.signal?.aborted ? options.signal.reason : new CriError(status[error.code] ?? 'UNKNOWN', error.details || error.message, error))
        })
        options.signal?.addEventListener('abort', onAbort, { once: true })
      }),
    events: (signal) => containerdEvents(clients.Events, signal),
    close: () => {
      for (const client of Object.values(clients)) client.close()
    },
  }
}

async function* containerdEvents(client: Client, signal: AbortSignal): AsyncGenerator<ContainerdEvent> {
  if (signal.aborted) return
  const subscribe = (client as unknown as { Subscribe(request: object, metadata: Metadata): EventStream }).Subscribe
  const stream = subscribe.call(client, { filters: ['namespace==k8s.io,topic=="/tasks/delete"'] }, new Metadata())
  const onAbort = () => stream.cancel()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    for await (const { event } of stream) yield event.value
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
    stream.cancel()
  }
}

/** A request's environment travels as bytes. */
export function encodeContainerConfig(config: cri.ContainerConfig): object {
  return { ...config, envs: config.envs.map(({ key, value }) => ({ key, value: Buffer.from(value) })) }
}
