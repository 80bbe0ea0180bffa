/**
 * The driver as its controllers see it (L3): calls of its controller service, and the capabilities that it reports.
 * Upstream: kubernetes-csi/csi-lib-utils, connection and rpc.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import { GrpcError } from '#grpc/grpcError'
import { csiProto } from '#grpc/proto/csi'
import { connectUnixService, type UnixService } from '#grpc/unixService'
import type { CsiController, CsiGroupController } from '../server/csiTypes.ts'

type Methods = Required<CsiController> &
  CsiGroupController & {
    controllerGetCapabilities(request: object): Capabilities
    groupControllerGetCapabilities(request: object): Capabilities
  }
export type CsiRequest<Method extends keyof Methods> = Partial<Parameters<Methods[Method]>[0]>
export type CsiAnswer<Method extends keyof Methods> = Awaited<ReturnType<Methods[Method]>>

export interface CsiConnection {
  /** @throws GrpcError in Go's words; another error for an answer that cannot be decoded; the signal's reason */
  call<Method extends keyof Methods>(method: Method, request: CsiRequest<Method>, timeoutMs: number, signal: AbortSignal): Promise<CsiAnswer<Method>>
  identity<Answer>(method: string, timeoutMs: number, signal: AbortSignal): Promise<Answer>
  /** What the node service can do. @throws GrpcError UNIMPLEMENTED when the socket has none */
  nodeCapabilities(timeoutMs: number, signal: AbortSignal): Promise<Capabilities>
  close(): void
}

interface Capabilities {
  readonly capabilities: readonly { readonly rpc: { readonly type: string } | null }[]
}

export interface CsiDriverFacts {
  readonly name: string
  /** Services, such as CONTROLLER_SERVICE, and when volumes may grow: ONLINE or OFFLINE. */
  readonly plugin: ReadonlySet<string>
  /** Calls of the controller service, such as CREATE_DELETE_VOLUME. */
  readonly controller: ReadonlySet<string>
  /** Volumes are snapshotted in groups. */
  readonly takesGroupSnapshots: boolean
  /** Volumes grow on nodes alone: the controller service has no part in it. */
  readonly expandsOnNodes: boolean
}

/** The service of a method, and its name there. */
export function wireMethod(method: keyof Methods): { readonly service: 'Controller' | 'GroupController'; readonly name: string } {
  return { service: /group/i.test(method) ? 'GroupController' : 'Controller', name: method.charAt(0).toUpperCase() + method.slice(1) }
}

/** @param path of the driver's socket; it is connected to with the first call, and again after a break */
export function connectCsi(path: string): CsiConnection {
  const target = `unix:${path}`
  const services = {
    Controller: connectUnixService(csiProto, 'csi.v1.Controller', target),
    GroupController: connectUnixService(csiProto, 'csi.v1.GroupController', target),
  }
  const identity = connectUnixService(csiProto, 'csi.v1.Identity', target)
  const node = connectUnixService(csiProto, 'csi.v1.Node', target)
  const close = (service: UnixService) => service.close()
  return {
    call: (method, request, timeoutMs, signal) => {
      const { service, name } = wireMethod(method)
      return services[service].call(name, request, timeoutMs, signal)
    },
    identity: (method, timeoutMs, signal) => identity.call(method, {}, timeoutMs, signal),
    nodeCapabilities: (timeoutMs, signal) => node.call('NodeGetCapabilities', {}, timeoutMs, signal),
    close: () => [...Object.values(services), identity, node].forEach(close),
  }
}

const probeTimeoutMs = 1000
const probePauseMs = 1000

/** Resolves when the driver is ready. @throws the signal's reason */
export async function learnDriver(connection: CsiConnection, { clock, log }: { clock: Clock; log: Logger }, signal: AbortSignal): Promise<CsiDriverFacts> {
  for (;;) {
    try {
      const { ready } = await connection.identity<{ ready: { value: boolean } | null }>('Probe', probeTimeoutMs, signal)
      if (ready?.value !== false) return await factsOf(connection, signal)
      log.info('The driver is not ready')
    } catch (error) {
      signal.throwIfAborted()
      log.warn('The driver cannot be reached', { error: messageOf(error) })
    }
    await clock.sleep(probePauseMs, signal)
  }
}

interface PluginCapability {
  readonly service: { readonly type: string } | null
  readonly volumeExpansion: { readonly type: string } | null
}

async function factsOf(connection: CsiConnection, signal: AbortSignal): Promise<CsiDriverFacts> {
  const { name } = await connection.identity<{ name: string }>('GetPluginInfo', probeTimeoutMs, signal)
  if (name === '') throw new Error('the driver has no name')
  const { capabilities } = await connection.identity<{ capabilities: readonly PluginCapability[] }>('GetPluginCapabilities', probeTimeoutMs, signal)
  const plugin = new Set(capabilities.flatMap(({ service, volumeExpansion }) => [service, volumeExpansion]).flatMap((one) => (one ? [one.type] : [])))
  const hasController = plugin.has('CONTROLLER_SERVICE')
  const controller = hasController ? callsOf(await connection.call('controllerGetCapabilities', {}, probeTimeoutMs, signal)) : new Set<string>()
  const groupController = plugin.has('GROUP_CONTROLLER_SERVICE')
    ? callsOf(await connection.call('groupControllerGetCapabilities', {}, probeTimeoutMs, signal))
    : new Set<string>()
  const takesGroupSnapshots = groupController.has('CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT')
  const expandsOnNodes = hasController && !controller.has('EXPAND_VOLUME') && (await nodeCalls(connection, signal)).has('EXPAND_VOLUME')
  return { name, plugin, controller, takesGroupSnapshots, expandsOnNodes }
}

const callsOf = ({ capabilities }: Capabilities): ReadonlySet<string> => new Set(capabilities.flatMap(({ rpc }) => (rpc ? [rpc.type] : [])))

/** A driver may have its node service behind another socket. */
async function nodeCalls(connection: CsiConnection, signal: AbortSignal): Promise<ReadonlySet<string>> {
  try {
    return callsOf(await connection.nodeCapabilities(probeTimeoutMs, signal))
  } catch (error) {
    if (error instanceof GrpcError && error.code === 'UNIMPLEMENTED') return new Set()
    throw error
  }
}
