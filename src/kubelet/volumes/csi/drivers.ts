/**
 * The CSI drivers that run on this node (L3, edge): registered through plugins_registry, and called through their sockets. A driver may hang, end, or answer
 * anything: an operation has a time limit, and an answer a size. Upstream: pkg/volume/csi/csi_plugin.go, csi_client.go, csi_drivers_store.go (v1.36).
 */

import { messageOf } from '#base/messageOf'
import { aborted } from '#base/orAborted'
import { GrpcError, type StatusName } from '#grpc/grpcError'
import { connectUnixService, type UnixService } from '#grpc/unixService'
import type { KubeletContext } from '../../core/context.ts'
import type { PluginHandler, PluginInfo } from '../../core/pluginHandler.ts'
import { createExclusive } from '../exclusive.ts'
import { csiText } from './csiText.ts'
import type { DriverNodeInfo, NodeInfoDeps } from './driverInstallation.ts'
import { createLastUsages, type LastUsages } from './lastUsages.ts'
import type { NodeService } from './observedCalls.ts'
import type { Version } from './versions.ts'

export type NodeCapability =
  | 'STAGE_UNSTAGE_VOLUME'
  | 'GET_VOLUME_STATS'
  | 'EXPAND_VOLUME'
  | 'VOLUME_CONDITION'
  | 'SINGLE_NODE_MULTI_WRITER'
  | 'VOLUME_MOUNT_GROUP'

/** The calls of one operation on a driver. */
export interface DriverOperation {
  /** Asks the driver once. @throws GrpcError */
  supports(capability: NodeCapability): Promise<boolean>
  /** @param method of csi.v1.Node @throws GrpcError */
  call<Response>(method: string, request: object): Promise<Response>
}

export interface CsiDrivers {
  readonly handler: PluginHandler
  /** @throws Error when no driver of the name is registered */
  operation(driver: string): DriverOperation
  /** The paths at which this kubelet has staged volumes: it stages a volume once, also when several pods use it. */
  readonly staged: Set<string>
  /** By where a volume is published. */
  readonly usages: LastUsages
  /** Closes the connections when the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

/** A node without drivers does not load the code. */
const registering = () => import('./registering.ts')

/** For all calls of an operation together. */
const operationTimeoutMs = 120_000
/** As in Go. */
const maxAnswerBytes = 4 << 20

interface Driver {
  readonly endpoint: string
  readonly version: Version
  readonly node: UnixService
}

interface GetInfoAnswer {
  readonly nodeId: string
  readonly maxVolumesPerNode: number
  readonly accessibleTopology: { readonly segments: Readonly<Record<string, string>> } | null
}

interface CapabilitiesAnswer {
  readonly capabilities: readonly { readonly rpc: { readonly type: string } | null }[]
}

/** After these the driver may still be at work: what it has done so far must stay. Upstream: isFinalError. */
const uncertain: ReadonlySet<StatusName> = new Set(['CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'ABORTED'])

/** Whether the driver has refused the call, and does nothing more for it. */
export function isFinal(error: unknown): boolean {
  return error instanceof GrpcError && !uncertain.has(error.code)
}

type Context = NodeInfoDeps & Pick<KubeletContext, 'log' | 'calls' | 'metrics'>

export function createCsiDrivers(context: Context, timeoutMs = operationTimeoutMs): CsiDrivers {
  const { clock, log } = context
  let observed: ((driver: string, node: NodeService) => NodeService) | undefined
  const drivers = new Map<string, Driver>()
  const inTurn = createExclusive()
  const stop = new AbortController()

  const operation = (name: string): DriverOperation => {
    if (name === '') throw new Error('driver name is empty')
    const driver = drivers.get(name)
    if (!driver) throw new Error(`driver name ${name} not found in the list of registered CSI drivers`)
    return operationOn(observed?.(name, driver.node) ?? driver.node, () => clock.monotonicMs(), timeoutMs)
  }
  const remove = async (name: string): Promise<void> => {
    drivers.get(name)?.node.close()
    drivers.delete(name)
    const { uninstallDriver } = await registering()
    await uninstallDriver(context, name, stop.signal)
  }
  const register = async ({ name, endpoint, supportedVersions }: PluginInfo): Promise<void> => {
    const { compareVersions, csiProto, highestVersion, installDriver, observedCalls } = await registering()
    const version = highestVersion(name, supportedVersions)
    const known = drivers.get(name)
    if (known && compareVersions(known.version, version) >= 0) {
      const text = `RegisterPlugin for CSI driver "${name}" failed. Another driver with the same name is already registered with a higher supported version`
      throw new Error(csiText(`${text}: "${known.version.join('.')}"`))
    }
    observed ??= observedCalls(context)
    known?.node.close()
    const node = connectUnixService(csiProto, 'csi.v1.Node', `unix:${endpoint}`, { waitForReady: false, maxMessageBytes: maxAnswerBytes })
    drivers.set(name, { endpoint, version, node })
    try {
      await installDriver(context, name, await nodeInfo(operation(name)), stop.signal)
    } catch (error) {
      await remove(name).catch((reason: unknown) => log.warn('Removing a CSI driver from the cluster failed', { driver: name, error: messageOf(reason) }))
      throw error
    }
  }

  return {
    handler: {
      type: 'CSIPlugin',
      register: (plugin) => inTurn(plugin.name, () => register(plugin)),
      deregister: ({ name, endpoint }) => {
        const removing = inTurn(name, async () => {
          if (drivers.get(name)?.endpoint === endpoint) await remove(name)
        })
        removing.catch((error: unknown) => log.warn('Removing a CSI driver from the cluster failed', { driver: name, error: messageOf(error) }))
      },
    },
    operation,
    staged: new Set(),
    usages: createLastUsages(clock),
    run: async (signal) => {
      await aborted(signal)
      stop.abort()
      for (const { node } of drivers.values()) node.close()
      drivers.clear()
    },
  }
}

function operationOn(node: NodeService, nowMs: () => number, timeoutMs: number): DriverOperation {
  const endMs = nowMs() + timeoutMs
  const call = <T>(method: string, request: object): Promise<T> => node.call<T>(method, request, Math.max(1, endMs - nowMs()))
  let asking: Promise<CapabilitiesAnswer> | undefined
  return {
    call,
    supports: async (capability) => {
      asking ??= call<CapabilitiesAnswer>('NodeGetCapabilities', {})
      return (await asking).capabilities.some(({ rpc }) => rpc?.type === capability)
    },
  }
}

async function nodeInfo(operation: DriverOperation): Promise<DriverNodeInfo> {
  const { nodeId, maxVolumesPerNode, accessibleTopology } = await operation.call<GetInfoAnswer>('NodeGetInfo', {})
  return { nodeId, maxVolumesPerNode, topology: accessibleTopology?.segments ?? {} }
}
