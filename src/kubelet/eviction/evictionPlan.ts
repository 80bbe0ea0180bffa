/**
 * Which pod must go when the node runs short (L3, pure): thresholds, node conditions, ranking, upstream's message.
 * Upstream: kubelet/eviction/helpers.go (v1.36).
 */
import { podRequests } from '#api/helpers/podResources'
import { isCriticalPod } from '../pods/admission.ts'
import { type FrozenPod, isStaticPod } from '../pods/containers.ts'
import { quantity } from '../pods/quantities.ts'

const evictionSignals = ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'pid.available'] as const
export type EvictionSignal = (typeof evictionSignals)[number]

export interface Observation {
  readonly available: number
  readonly capacity: number
}

export type Observations = Partial<Record<EvictionSignal, Observation>>

export interface ThresholdMet {
  readonly signal: EvictionSignal
  readonly threshold: number
  readonly available: number
}

/** Usage of one container; bytes. */
export interface ContainerConsumption {
  readonly podUid: string
  readonly container: string
  readonly memoryBytes: number
  readonly diskBytes: number
}

/** '10%' of the capacity, or a quantity. */
export function thresholdValue(text: string, capacity: number): number {
  return text.endsWith('%') ? (Number(text.slice(0, -1)) / 100) * capacity : quantity(text)
}

/** Memory first: it is the signal that hurts at once. */
export function thresholdsMet(observations: Observations, thresholds: Readonly<Record<string, string>>): ThresholdMet[] {
  return evictionSignals.flatMap((signal) => {
    const observation = observations[signal]
    const text = thresholds[signal]
    if (!observation || text === undefined) return []
    const threshold = thresholdValue(text, observation.capacity)
    return observation.available < threshold ? [{ signal, threshold, available: observation.available }] : []
  })
}

export const resourceOf: Readonly<Record<EvictionSignal, string>> = {
  'memory.available': 'memory',
  'nodefs.available': 'ephemeral-storage',
  'nodefs.inodesFree': 'inodes',
  'imagefs.available': 'ephemeral-storage',
  'pid.available': 'pids',
}

export const conditionOf: Readonly<Record<EvictionSignal, 'memory' | 'disk' | 'pid'>> = {
  'memory.available': 'memory',
  'nodefs.available': 'disk',
  'nodefs.inodesFree': 'disk',
  'imagefs.available': 'disk',
  'pid.available': 'pid',
}

/** First to go first: those above their request, then the lower priority, then the larger excess. Critical and static pods stay. */
export function rankForEviction(pods: readonly FrozenPod[], usage: readonly ContainerConsumption[], signal: EvictionSignal): FrozenPod[] {
  const resource = resourceOf[signal]
  const used = (pod: FrozenPod) =>
    usage
      .filter((entry) => entry.podUid === pod.metadata.uid)
      .reduce((sum, entry) => sum + (resource === 'memory' ? entry.memoryBytes : resource === 'ephemeral-storage' ? entry.diskBytes : 0), 0)
  const excess = (pod: FrozenPod) => used(pod) - (podRequests(pod)[resource] ?? 0)
  return pods
    .filter((pod) => !isCriticalPod(pod) && !isStaticPod(pod))
    .sort((a, b) => Number(excess(b) > 0) - Number(excess(a) > 0) || (a.spec.priority ?? 0) - (b.spec.priority ?? 0) || excess(b) - excess(a))
}

/** Binary units, as Quantity prints sizes. */
function binary(bytes: number): string {
  if (bytes >= 2 ** 20 && bytes % 2 ** 20 === 0) return `${bytes / 2 ** 20}Mi`
  return bytes % 1024 === 0 ? `${bytes / 1024}Ki` : bytes >= 1024 ? `${Math.floor(bytes / 1024)}Ki` : String(Math.floor(bytes))
}

/** The text of the pod's status and event when it is evicted for a resource. */
export function evictionMessage(pod: FrozenPod, met: ThresholdMet, usage: readonly ContainerConsumption[]): string {
  const resource = resourceOf[met.signal]
  const own = usage.filter((entry) => entry.podUid === pod.metadata.uid)
  const containers = own.map((entry) => {
    const request = pod.spec.containers.find((container) => container.name === entry.container)?.resources?.requests?.[resource] ?? '0'
    const used = resource === 'memory' ? entry.memoryBytes : entry.diskBytes
    return used > quantity(request)
      ? `Container ${entry.container} was using ${binary(used)}, request is ${request}, has larger consumption of ${resource}. `
      : ''
  })
  return `The node was low on resource: ${resource}. Threshold quantity: ${binary(met.threshold)}, available: ${binary(met.available)}. ${containers.join('')}`
}
