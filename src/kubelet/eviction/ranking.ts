/**
 * Sorts pods for eviction under pressure and composes the messages (L3, pure). Upstream: kubelet/eviction/helpers.go rankMemoryPressure,
 * rankDiskPressureFunc, rankPIDPressure, evictionMessage (v1.36).
 */
import { podRequests } from '#api/helpers/podResources'
import { canonicalQuantity, formatQuantity, quantityOf } from '#api/machinery/quantity'
import type { FrozenPod } from '../core/containers.ts'
import { quantity } from '../core/quantities.ts'
import { allDiskParts, type DiskPart, diskOf, memoryOf, type PodUsage } from './podUsage.ts'
import { type EvictionSignal, type Observations, resourceOf, type StarvedResource, type Threshold, thresholdText } from './thresholds.ts'

export type UsageOf = (pod: FrozenPod) => PodUsage | undefined

/** Which parts of pods lie where the signal looks. */
export function partsOf(signal: EvictionSignal, dedicatedImageFs: boolean): readonly DiskPart[] {
  if (!dedicatedImageFs) return allDiskParts
  return signal.startsWith('nodefs.') ? ['logs', 'volumes'] : ['rootfs']
}

function usedOf(usage: PodUsage, resource: StarvedResource, parts: readonly DiskPart[]): number {
  if (resource === 'memory') return memoryOf(usage)
  return resource === 'pids' ? usage.processes : diskOf(usage, resource === 'inodes' ? 'inodes' : 'bytes', parts)
}

/** Sorts the first victim first: pods above their requests, then by lower priority, then by larger excess. Processes have no requests. */
export function rankForEviction(pods: readonly FrozenPod[], usageOf: UsageOf, signal: EvictionSignal, dedicatedImageFs: boolean): FrozenPod[] {
  const resource = resourceOf(signal)
  const parts = partsOf(signal, dedicatedImageFs)
  const ranked = pods.map((pod) => {
    const usage = usageOf(pod)
    const used = usage ? usedOf(usage, resource, parts) : 0
    const requests = podRequests(pod)
    // A pod without statistics is evicted first, as upstream does: it may be the cause.
    const exceeds = !usage ? 2 : resource !== 'pids' && used > (requests[resource] ?? 0) ? 1 : 0
    const asked = resource === 'inodes' ? (requests['ephemeral-storage'] ?? 0) : (requests[resource] ?? 0)
    return { pod, exceeds, priority: pod.spec.priority ?? 0, excess: resource === 'pids' ? used : used - asked }
  })
  return ranked.sort((a, b) => b.exceeds - a.exceeds || a.priority - b.priority || b.excess - a.excess).map(({ pod }) => pod)
}

const bytesText = (bytes: number) => formatQuantity(quantityOf(bytes, 'BinarySI'))

export interface EvictionNotice {
  readonly message: string
  /** Annotations of the event. */
  readonly annotations: Readonly<Record<string, string>>
}

/** The text of the pod's status and event, with who used more than was asked for. */
export function evictionNotice(
  pod: FrozenPod,
  resource: StarvedResource,
  usage: PodUsage | undefined,
  met: readonly Threshold[],
  seen: Observations,
): EvictionNotice {
  const parts = [`The node was low on resource: ${resource}. `]
  const threshold = met.find(({ signal }) => resourceOf(signal) === resource && seen[signal])
  const observation = threshold ? seen[threshold.signal] : undefined
  if (threshold && observation) {
    const available = resource === 'inodes' || resource === 'pids' ? String(observation.available) : bytesText(observation.available)
    parts.push(`Threshold quantity: ${thresholdText(threshold.value, observation.capacity)}, available: ${available}. `)
  }
  if (!usage) return { message: parts.join(''), annotations: {} }
  const annotations: Record<string, string> = {}
  const podRequest = pod.spec.resources?.requests?.[resource]
  if (resource === 'memory' && podRequest !== undefined) {
    const used = bytesText(memoryOf(usage))
    parts.push(`Pod ${pod.metadata.name} was using ${used}, request is ${canonicalQuantity(podRequest)}, has larger consumption of ${resource}. `)
    Object.assign(annotations, { offending_pod: pod.metadata.name, offending_pod_usage: used })
  }
  const offenders = offendingContainers(pod, resource, usage)
  for (const { name, used, request } of offenders) {
    parts.push(`Container ${name} was using ${used}, request is ${request}, has larger consumption of ${resource}. `)
  }
  annotations.offending_containers = offenders.map(({ name }) => name).join(',')
  annotations.offending_containers_usage = offenders.map(({ used }) => used).join(',')
  annotations.starved_resource = resource
  return { message: parts.join(''), annotations }
}

function offendingContainers(pod: FrozenPod, resource: StarvedResource, usage: PodUsage) {
  if (resource !== 'memory' && resource !== 'ephemeral-storage') return []
  const specs = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])]
  return usage.containers.flatMap(({ name, memoryBytes, rootfs, logs }) => {
    const spec = specs.find((container) => container.name === name)
    if (!spec) return []
    const request = spec.resources?.requests?.[resource] ?? '0'
    const used = resource === 'memory' ? memoryBytes : rootfs.bytes + logs.bytes
    return used > quantity(request) ? [{ name, used: bytesText(used), request: canonicalQuantity(request) }] : []
  })
}
