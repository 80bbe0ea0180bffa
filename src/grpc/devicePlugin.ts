/**
 * The device plugin API's messages as they look in JavaScript, and a connection to one plugin (L1).
 * Upstream: kubelet/cm/devicemanager/plugin/v1beta1/client.go (v1.36).
 */
import { devicePluginProto } from './proto/devicePlugin.ts'
import { loadService } from './protoMessage.ts'
import { connectUnixService } from './unixService.ts'

export interface PluginOptions {
  readonly preStartRequired: boolean
  readonly getPreferredAllocationAvailable: boolean
}

export interface PluginDevice {
  readonly ID: string
  readonly health: string
  readonly topology: { readonly nodes: readonly { readonly ID: number }[] } | null
}

/** What a container needs to use its devices. */
export interface ContainerAllocation {
  readonly envs: Readonly<Record<string, string>>
  readonly mounts: readonly { readonly containerPath: string; readonly hostPath: string; readonly readOnly: boolean }[]
  readonly devices: readonly { readonly containerPath: string; readonly hostPath: string; readonly permissions: string }[]
  readonly annotations: Readonly<Record<string, string>>
  readonly cdiDevices: readonly { readonly name: string }[]
}

export interface DevicePluginClient {
  listAndWatch(signal: AbortSignal): AsyncIterable<{ readonly devices: readonly PluginDevice[] }>
  allocate(ids: readonly string[]): Promise<readonly ContainerAllocation[]>
  preferred(available: readonly string[], mustInclude: readonly string[], size: number): Promise<readonly string[]>
  preStart(ids: readonly string[]): Promise<void>
  close(): void
}

const callTimeoutMs = 10_000
/** Plugins may do slow things with the device before its container starts. */
const preStartTimeoutMs = 30_000

export function connectDevicePlugin(socket: string): DevicePluginClient {
  const service = connectUnixService(devicePluginProto, 'v1beta1.DevicePlugin', `unix:${socket}`)
  return {
    listAndWatch: (signal) => service.stream('ListAndWatch', {}, signal),
    allocate: async (ids) => {
      const request = { containerRequests: [{ devicesIds: ids }] }
      return (await service.call<{ containerResponses: ContainerAllocation[] }>('Allocate', request, callTimeoutMs)).containerResponses
    },
    preferred: async (availableDeviceIDs, mustIncludeDeviceIDs, allocationSize) => {
      const request = { containerRequests: [{ availableDeviceIDs, mustIncludeDeviceIDs, allocationSize }] }
      const { containerResponses } = await service.call<{ containerResponses: { deviceIDs: string[] }[] }>('GetPreferredAllocation', request, callTimeoutMs)
      return containerResponses[0]?.deviceIDs ?? []
    },
    preStart: async (devicesIds) => {
      await service.call('PreStartContainer', { devicesIds }, preStartTimeoutMs)
    },
    close: () => service.close(),
  }
}

/** AllocateResponse with one container: field 1, then the container's message with its length before it. */
const containerTag = 0x0a

function codec() {
  const allocate = loadService(devicePluginProto, 'v1beta1.DevicePlugin').get('Allocate')
  if (!allocate) throw new Error('the device plugin API has no Allocate')
  return allocate.response
}

/** One container's allocation in the wire format, as upstream's checkpoint keeps it. */
export function encodeAllocation(allocation: ContainerAllocation): Uint8Array {
  const message = codec().encode({ containerResponses: [allocation] })
  let start = 1
  while ((message[start] ?? 0) & 0x80) start++
  return message.subarray(start + 1)
}

/** @throws Error for bytes that are no allocation. */
export function decodeAllocation(bytes: Uint8Array): ContainerAllocation {
  const length: number[] = []
  let rest = bytes.length
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) length.push((rest % 128) | 0x80)
  const message = Buffer.concat([Buffer.from([containerTag, ...length, rest]), bytes])
  const { containerResponses } = codec().decode(message) as { containerResponses: ContainerAllocation[] }
  const [allocation] = containerResponses
  if (!allocation) throw new Error('not an allocation of a device plugin')
  return allocation
}
