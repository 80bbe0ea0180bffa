/**
 * Tells agents on the node who has which devices, CPUs and memory (L3, edge): the pod resources API v1 at pod-resources/kubelet.sock, for root only.
 * Upstream: kubelet/apis/podresources/server_v1.go (v1.36).
 */
import { dirname } from 'node:path'
import { aborted } from '#base/orAborted'
import { GrpcRefusal } from '#grpc/grpcService'
import { podResourcesProto } from '#grpc/proto/podResources'
import { serveUnix } from '#grpc/unixServer'
import { makeDirectory } from '#host/files'
import { type FrozenContainer, type FrozenPod, isRestartableInitContainer, isTerminalPhase } from '../core/containers.ts'
import type { CpuManager } from './cpu/cpuManager.ts'
import type { DeviceManager } from './devices/deviceManager.ts'
import { withoutNode } from './devices/podDevices.ts'
import { type ClaimInfo, cdiDevicesOf } from './dra/claimCache.ts'
import type { DraManager } from './dra/draManager.ts'
import type { podResourcesMetrics } from './managerMetrics.ts'
import type { MemoryManager } from './memory/memoryManager.ts'
import type { MemoryBlock } from './memory/memoryState.ts'

export interface PodResourcesSource {
  readonly cpus: CpuManager
  readonly memory: MemoryManager
  readonly devices: DeviceManager
  readonly dra: DraManager
  pods(): readonly FrozenPod[]
  /** Around every method. */
  readonly counted: ReturnType<typeof podResourcesMetrics>
}

const topology = (nodes: readonly number[]) => (nodes.length > 0 ? { topology: { nodes: nodes.map((ID) => ({ ID })) } } : {})
const memoryOf = (blocks: readonly MemoryBlock[]) => blocks.map(({ type, size, numaAffinity }) => ({ memoryType: type, size, ...topology(numaAffinity) }))

function containerDevices(source: PodResourcesSource, podUid: string, container: string) {
  return source.devices.allocations(podUid, container).flatMap(({ resource, byNode }) =>
    Object.entries(byNode).map(([node, deviceIds]) => ({
      resourceName: resource,
      deviceIds,
      ...topology(Number(node) === withoutNode ? [] : [Number(node)]),
    })),
  )
}

function dynamicResource(claim: ClaimInfo) {
  const claimResources = [...claim.drivers].flatMap(([driverName, devices]) =>
    devices.map(({ poolName, deviceName, cdiDeviceIds, shareId }) => ({
      driverName,
      poolName,
      deviceName,
      cdiDevices: cdiDeviceIds.map((name) => ({ name })),
      ...(shareId ? { shareId } : {}),
    })),
  )
  return { claimName: claim.name, claimNamespace: claim.namespace, claimResources }
}

function containerResources(source: PodResourcesSource, pod: FrozenPod, container: FrozenContainer) {
  const uid = pod.metadata.uid ?? ''
  let claims: readonly ClaimInfo[] = []
  try {
    claims = source.dra.claims(pod, container)
  } catch {
    // Claims that are not prepared yet have no devices.
  }
  return {
    name: container.name,
    devices: containerDevices(source, uid, container.name),
    cpuIds: source.cpus.exclusive(uid, container.name),
    memory: memoryOf(source.memory.blocks(uid, container.name)),
    dynamicResources: claims.filter((claim) => cdiDevicesOf(claim, undefined).length > 0 || claim.prepared).map(dynamicResource),
  }
}

function podResources(source: PodResourcesSource, pod: FrozenPod) {
  const containers = [...(pod.spec.initContainers ?? []).filter(isRestartableInitContainer), ...pod.spec.containers]
  return {
    name: pod.metadata.name ?? '',
    namespace: pod.metadata.namespace ?? '',
    containers: containers.map((container) => containerResources(source, pod, container)),
  }
}

/** The API's answers as plain values. */
export function podResourcesMethods(source: PodResourcesSource) {
  const active = () => source.pods().filter((pod) => !isTerminalPhase(pod.status?.phase))
  return {
    List: source.counted('list', () => ({ podResources: active().map((pod) => podResources(source, pod)) })),
    Get: source.counted('get', ({ podName, podNamespace }: { podName: string; podNamespace: string }) => {
      const pod = active().find(({ metadata }) => metadata.name === podName && metadata.namespace === podNamespace)
      if (!pod) throw new GrpcRefusal('UNKNOWN', `pod ${podName} in namespace ${podNamespace} not found`)
      return { podResources: podResources(source, pod) }
    }),
    GetAllocatableResources: source.counted('get_allocatable', () => ({
      devices: source.devices.allocatable().map(({ resource, id, nodes }) => ({ resourceName: resource, deviceIds: [id], ...topology(nodes) })),
      cpuIds: source.cpus.allocatable(),
      memory: memoryOf(source.memory.allocatable()),
    })),
  }
}

/** Serves until aborted. */
export async function servePodResources(socket: string, source: PodResourcesSource, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await makeDirectory(dirname(socket), 0o750)
  const server = await serveUnix(socket, [{ proto: podResourcesProto, service: 'v1.PodResourcesLister', methods: podResourcesMethods(source) }])
  await aborted(signal)
  await server.close()
}
