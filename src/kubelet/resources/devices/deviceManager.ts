/**
 * Allocates the devices of plugins to containers (L3): aligned with CPUs and memory, with the containers' options and the node's
 * capacity. Upstream: kubelet/cm/devicemanager/manager.go (v1.36).
 */
import type { ContainerStatus } from '#api/gen/types/core.v1'
import { messageOf } from '#base/messageOf'
import type { ContainerAllocation } from '#grpc/devicePlugin'
import type { CheckpointFile } from '../../core/checkpointFile.ts'
import { type FrozenContainer, type FrozenPod, isRestartableInitContainer } from '../../core/containers.ts'
import { wholeUnits } from '../../core/quantities.ts'
import { InitReuse } from '../initReuse.ts'
import type { DeviceMetrics } from '../managerMetrics.ts'
import type { NumaMask, ProviderHints } from '../topology/hints.ts'
import type { HintProvider } from '../topology/topologyManager.ts'
import { byAffinity, deviceHints } from './deviceHints.ts'
import type { DeviceResource, PluginRegistry } from './pluginRegistry.ts'
import { type DeviceAllocation, idsOf, PodDevices, parseDevices, renderDevices, withoutNode } from './podDevices.ts'

export interface DeviceManager extends HintProvider {
  /** The container's options for its devices; calls PreStartContainer of plugins that require it. */
  optionsFor(pod: FrozenPod, container: FrozenContainer): Promise<ContainerAllocation[]>
  capacity(): Readonly<Record<string, { readonly capacity: number; readonly allocatable: number }>>
  allocations(podUid: string, container: string): DeviceAllocation[]
  /** Everything that could be allocated: resource → healthy devices with their NUMA nodes. */
  allocatable(): { readonly resource: string; readonly id: string; readonly nodes: readonly number[] }[]
  /** The health of what a container has. */
  status(podUid: string, container: string): NonNullable<ContainerStatus['allocatedResourcesStatus']>
  release(podUid: string): void
  pods(): ReadonlySet<string>
  save(): Promise<void>
}

interface Request {
  readonly pod: FrozenPod
  readonly container: FrozenContainer
  readonly resource: string
  readonly count: number
}

/** @param numaNodes ids of the machine's NUMA nodes */
export async function createDeviceManager(
  registry: PluginRegistry,
  numaNodes: readonly number[],
  file: CheckpointFile,
  warn: (message: string) => void,
  timed: DeviceMetrics['timedAllocation'] = (_resource, allocate) => allocate(),
): Promise<DeviceManager> {
  const devices = await restore(registry, file, warn)
  const reuse = new InitReuse<string>()
  const uidOf = (pod: FrozenPod) => pod.metadata.uid ?? ''
  /** Reads a device's NUMA nodes at each call, because plugins may correct them. */
  const nodesIn = (known: DeviceResource | undefined) => (id: string) => (known?.devices.get(id)?.topology?.nodes ?? []).map(({ ID }) => ID)
  const save = () =>
    file.write(() => renderDevices(devices, Object.fromEntries(registry.names().map((name) => [name, [...(registry.get(name)?.devices.keys() ?? [])].sort()]))))

  /** Resources of plugins that the container asks for. Requests and limits are the same for them. */
  const requests = (pod: FrozenPod, container: FrozenContainer): Request[] =>
    Object.entries(container.resources?.limits ?? {}).flatMap(([resource, text]) => {
      const isOurs = registry.names().includes(resource) || devices.get(uidOf(pod), container.name, resource) !== undefined
      const count = wholeUnits(text)
      return isOurs && count > 0 && !isFromClaim(pod, container, resource) ? [{ pod, container, resource, count }] : []
    })

  const available = (resource: string): Set<string> => {
    const used = devices.inUse(resource)
    return new Set([...registry.healthy(resource)].filter((id) => !used.has(id)))
  }

  const hintsFor = (pod: FrozenPod, resource: string, count: number, allocated: readonly string[]): ReturnType<typeof deviceHints> | undefined => {
    const known = registry.get(resource)
    const nodesOf = nodesIn(known)
    const all = [...(known?.devices.keys() ?? [])]
    if (!all.some((id) => nodesOf(id).length > 0)) return undefined
    if (allocated.length > 0) {
      if (allocated.length !== count) return []
      return deviceHints(numaNodes, nodesOf, { all, available: new Set(allocated), reusable: new Set() }, count)
    }
    const reusable = reuse.of(pod, resource)
    const free = available(resource)
    if (free.size + reusable.size < count) return []
    return deviceHints(numaNodes, nodesOf, { all, available: free, reusable }, count)
  }

  const allocateOne = async (request: Request, affinity: NumaMask | undefined): Promise<void> => {
    const { pod, container, resource } = request
    const ids = await chooseDevices(request, {
      registry,
      before: devices.get(uidOf(pod), container.name, resource),
      reusable: [...reuse.of(pod, resource)],
      available: [...available(resource)],
      affinity,
    })
    if (!ids) return
    const known = registry.get(resource)
    if (!known?.client) throw new Error(`unknown Device Plugin ${resource}`)
    const { client } = known
    const [allocation] = await timed(resource, () => client.allocate(ids))
    if (!allocation) throw new Error('no containers return in allocation response [container_responses:[]]')
    devices.insert({ podUid: uidOf(pod), container: container.name, resource, byNode: groupByNode(ids, nodesIn(known)), allocation })
  }

  return {
    save,
    hints: (pod, container): ProviderHints =>
      Object.fromEntries(
        requests(pod, container).map(({ resource, count }) => {
          const before = devices.get(uidOf(pod), container.name, resource)
          return [resource, hintsFor(pod, resource, count, before ? idsOf(before) : [])]
        }),
      ),
    podHints: (pod): ProviderHints => {
      const totals = podTotals(pod, requests)
      return Object.fromEntries(
        [...totals].map(([resource, count]) => {
          const before = devices.all().filter((entry) => entry.podUid === uidOf(pod) && entry.resource === resource)
          return [resource, hintsFor(pod, resource, count, [...new Set(before.flatMap(idsOf))])]
        }),
      )
    },
    allocate: async (pod, container, { affinity }) => {
      for (const request of requests(pod, container)) await allocateOne(request, affinity)
      for (const entry of devices.of(uidOf(pod), container.name)) reuse.note(pod, container, entry.resource, idsOf(entry))
    },
    optionsFor: async (pod, container) => {
      const options: ContainerAllocation[] = []
      for (const request of requests(pod, container)) {
        // After a lost checkpoint the allocation is unknown: the container gets devices again.
        if (!devices.get(uidOf(pod), container.name, request.resource)) await allocateOne(request, undefined)
        const entry = devices.get(uidOf(pod), container.name, request.resource)
        const known = registry.get(request.resource)
        if (!entry) continue
        if (known?.options.preStartRequired) {
          if (!known.client) throw new Error(`endpoint not found in cache for a registered resource: ${request.resource}`)
          await known.client.preStart(idsOf(entry))
        }
        options.push(entry.allocation)
      }
      return options
    },
    capacity: () =>
      Object.fromEntries(registry.names().map((name) => [name, { capacity: registry.get(name)?.devices.size ?? 0, allocatable: registry.healthy(name).size }])),
    allocations: (podUid, container) => devices.of(podUid, container),
    allocatable: () =>
      registry.names().flatMap((resource) => {
        const nodesOf = nodesIn(registry.get(resource))
        return [...registry.healthy(resource)].map((id) => ({ resource, id, nodes: nodesOf(id) }))
      }),
    status: (podUid, container) =>
      devices.of(podUid, container).map((entry) => ({
        name: entry.resource,
        resources: idsOf(entry).map((resourceID) => ({ resourceID, health: healthOf(registry.get(entry.resource), resourceID) })),
      })),
    release: (podUid) => {
      devices.release(podUid)
      reuse.forget(podUid)
    },
    pods: () => new Set(devices.all().map(({ podUid }) => podUid)),
  }
}

/** Extended resources that the scheduler took from a DRA claim are no plugin's. */
function isFromClaim(pod: FrozenPod, container: FrozenContainer, resource: string): boolean {
  const mappings = pod.status?.extendedResourceClaimStatus?.requestMappings ?? []
  return mappings.some((mapping) => mapping.containerName === container.name && mapping.resourceName === resource)
}

function healthOf(known: DeviceResource | undefined, id: string): string {
  const device = known?.devices.get(id)
  return device ? device.health : known ? 'Unhealthy' : 'Unknown'
}

function groupByNode(ids: readonly string[], nodesOf: (id: string) => readonly number[]): Record<string, string[]> {
  const byNode: Record<string, string[]> = {}
  for (const id of ids) {
    const nodes = nodesOf(id)
    for (const node of nodes.length > 0 ? nodes : [withoutNode]) byNode[node] = [...(byNode[node] ?? []), id]
  }
  return byNode
}

/** The larger of what regular containers and sidecars need together, and each init step. */
function podTotals(pod: FrozenPod, requests: (pod: FrozenPod, container: FrozenContainer) => Request[]): Map<string, number> {
  const sidecars = new Map<string, number>()
  const peak = new Map<string, number>()
  const add = (to: Map<string, number>, name: string, count: number) => to.set(name, (to.get(name) ?? 0) + count)
  for (const container of pod.spec.initContainers ?? []) {
    for (const { resource, count } of requests(pod, container)) {
      if (isRestartableInitContainer(container)) add(sidecars, resource, count)
      const step = isRestartableInitContainer(container) ? 0 : count
      peak.set(resource, Math.max(peak.get(resource) ?? 0, (sidecars.get(resource) ?? 0) + step))
    }
  }
  const total = new Map(sidecars)
  for (const container of pod.spec.containers) for (const { resource, count } of requests(pod, container)) add(total, resource, count)
  for (const [name, count] of peak) total.set(name, Math.max(total.get(name) ?? 0, count))
  return total
}

/** The devices to allocate; undefined when the container has its devices already. @throws Error in upstream's words. */
async function chooseDevices(
  { pod, container, resource, count }: Request,
  from: {
    readonly registry: PluginRegistry
    readonly before: DeviceAllocation | undefined
    readonly reusable: readonly string[]
    readonly available: readonly string[]
    readonly affinity: NumaMask | undefined
  },
): Promise<string[] | undefined> {
  const before = from.before ? idsOf(from.before) : []
  if (from.before && before.length !== count) {
    throw new Error(`pod "${pod.metadata.uid}" container "${container.name}" changed request for resource "${resource}" from ${before.length} to ${count}`)
  }
  const known = from.registry.get(resource)
  if (!known) throw new Error(`cannot allocate unregistered device ${resource}`)
  const healthy = from.registry.healthy(resource)
  if (healthy.size === 0) throw new Error(`no healthy devices present; cannot allocate unhealthy devices ${resource}`)
  if (!before.every((id) => healthy.has(id))) {
    throw new Error(`previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${resource}`)
  }
  if (from.before) return undefined
  const chosen = from.reusable.slice(0, count)
  const missing = () => count - chosen.length
  const take = (ids: readonly string[]) => chosen.push(...ids.filter((id) => !chosen.includes(id)).slice(0, missing()))
  if (missing() === 0) return chosen
  if (from.available.length < missing()) {
    throw new Error(`requested number of devices unavailable for ${resource}. Requested: ${missing()}, Available: ${from.available.length}`)
  }
  const nodesOf = (id: string) => (known.devices.get(id)?.topology?.nodes ?? []).map(({ ID }) => ID)
  const { aligned, unaligned, withoutAffinity } = byAffinity(from.available, nodesOf, from.affinity)
  const preferred = async (among: readonly string[]) => {
    if (!known.options.getPreferredAllocationAvailable || !known.client) return []
    return (await known.client.preferred([...new Set([...among, ...chosen])], chosen, count)).filter((id) => among.includes(id))
  }
  if (missing() < aligned.length) {
    take(await preferred(aligned))
    take(aligned)
    return chosen
  }
  take(aligned)
  if (missing() > 0) take(await preferred(from.available))
  take(unaligned)
  take(withoutAffinity)
  return chosen
}

async function restore(registry: PluginRegistry, file: CheckpointFile, warn: (message: string) => void): Promise<PodDevices> {
  const text = await file.read()
  if (text === undefined) return new PodDevices()
  try {
    const { devices, registered } = parseDevices(text)
    for (const resource of Object.keys(registered)) registry.remember(resource)
    return devices
  } catch (error) {
    // Upstream continues as well: plugins register again, only the allocations are lost.
    warn(`${file.path}: ${messageOf(error)}`)
    return new PodDevices()
  }
}
