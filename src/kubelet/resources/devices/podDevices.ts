/**
 * Which devices which containers have (L3, pure), and its checkpoint `kubelet_internal_checkpoint` in upstream's format.
 * Upstream: kubelet/cm/devicemanager/pod_devices.go, checkpoint/checkpoint.go (v1.36).
 */
import { fnv32a } from '#base/fnv'
import { type ContainerAllocation, decodeAllocation, encodeAllocation } from '#grpc/devicePlugin'
import { type GoValue, goDump, goMap, goScalar, goSlice, goString, goStruct } from '../../core/goDump.ts'

export interface DeviceAllocation {
  readonly podUid: string
  readonly container: string
  readonly resource: string
  /** NUMA node → ids; -1 for devices without one. */
  readonly byNode: Readonly<Record<string, readonly string[]>>
  readonly allocation: ContainerAllocation
}

export const withoutNode = -1

export const idsOf = ({ byNode }: Pick<DeviceAllocation, 'byNode'>): string[] => [...new Set(Object.values(byNode).flat())]

export class PodDevices {
  readonly #entries = new Map<string, DeviceAllocation>()

  #key(podUid: string, container: string, resource: string): string {
    return `${podUid}/${container}/${resource}`
  }

  insert(entry: DeviceAllocation): void {
    this.#entries.set(this.#key(entry.podUid, entry.container, entry.resource), entry)
  }

  get(podUid: string, container: string, resource: string): DeviceAllocation | undefined {
    return this.#entries.get(this.#key(podUid, container, resource))
  }

  of(podUid: string, container: string): DeviceAllocation[] {
    return this.all().filter((entry) => entry.podUid === podUid && entry.container === container)
  }

  all(): DeviceAllocation[] {
    return [...this.#entries.values()]
  }

  release(podUid: string): void {
    for (const [key, entry] of this.#entries) if (entry.podUid === podUid) this.#entries.delete(key)
  }

  /** Devices of a resource that some container has. */
  inUse(resource: string): Set<string> {
    return new Set(this.all().flatMap((entry) => (entry.resource === resource ? idsOf(entry) : [])))
  }
}

interface Entry {
  readonly PodUID: string
  readonly ContainerName: string
  readonly ResourceName: string
  readonly DeviceIDs: Readonly<Record<string, readonly string[]>>
  /** The plugin's answer in its wire format, in base64. */
  readonly AllocResp: string
}

interface Data {
  readonly PodDeviceEntries: readonly Entry[] | null
  readonly RegisteredDevices: Readonly<Record<string, readonly string[]>>
}

function checksum({ PodDeviceEntries, RegisteredDevices }: Data): number {
  const strings = (values: readonly string[]) => goSlice('[]string', values.map(goString))
  const entry = ({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: Entry): GoValue =>
    goStruct(
      'checkpoint.PodDevicesEntry',
      ['PodUID', goString(PodUID)],
      ['ContainerName', goString(ContainerName)],
      ['ResourceName', goString(ResourceName)],
      ['DeviceIDs', goMap('checkpoint.DevicesPerNUMA', DeviceIDs, strings)],
      [
        'AllocResp',
        goSlice(
          '[]uint8',
          [...Buffer.from(AllocResp, 'base64')].map((byte) => goScalar('uint8', byte)),
        ),
      ],
    )
  const entries = '[]checkpoint.PodDevicesEntry'
  const data = goStruct(
    'checkpoint.checkpointData',
    ['PodDeviceEntries', PodDeviceEntries === null ? goScalar(entries, '<nil>') : goSlice(entries, PodDeviceEntries.map(entry))],
    ['RegisteredDevices', goMap('map[string][]string', RegisteredDevices, strings)],
  )
  return fnv32a(goDump(data))
}

/** @param registered resource → ids of all devices that plugins have listed */
export function renderDevices(devices: PodDevices, registered: Readonly<Record<string, readonly string[]>>): string {
  const entries = devices.all().map(
    ({ podUid, container, resource, byNode, allocation }): Entry => ({
      PodUID: podUid,
      ContainerName: container,
      ResourceName: resource,
      DeviceIDs: byNode,
      AllocResp: Buffer.from(encodeAllocation(allocation)).toString('base64'),
    }),
  )
  const data = { PodDeviceEntries: entries.length > 0 ? entries : null, RegisteredDevices: registered }
  return JSON.stringify({ Data: data, Checksum: checksum(data) })
}

/** @throws Error for a file that is damaged. */
export function parseDevices(text: string): { readonly devices: PodDevices; readonly registered: Readonly<Record<string, readonly string[]>> } {
  const { Data: data, Checksum } = JSON.parse(text) as { Data: Data; Checksum: number }
  if (checksum(data) !== Checksum) throw new Error('checkpoint is corrupted')
  const devices = new PodDevices()
  for (const { PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp } of data.PodDeviceEntries ?? []) {
    const allocation = decodeAllocation(Buffer.from(AllocResp, 'base64'))
    devices.insert({ podUid: PodUID, container: ContainerName, resource: ResourceName, byNode: DeviceIDs, allocation })
  }
  return { devices, registered: data.RegisteredDevices ?? {} }
}
