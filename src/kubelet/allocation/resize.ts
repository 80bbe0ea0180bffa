/**
 * In-place resize (L3, pure): whether a node can allocate what a pod now requests, the order of waiting pods, which running containers get
 * other limits or must restart for them, and the messages about it. Upstream: kubelet/allocation, kuberuntime_manager.go computePodResizeAction (v1.36).
 */
import type { ResourceRequirements } from '#api/gen/types/core.v1'
import { podRequests } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { effectiveResources, podQosClass } from '../core/cgroupResources.ts'
import type { FrozenContainer, FrozenPod } from '../core/containers.ts'
import type { ContainerRecord, PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { findContainer } from '../core/podRuntimeStatus.ts'
import { milliUnits, quantity, wholeUnits } from '../core/quantities.ts'
import { admitPod } from './admission.ts'

export type Resources = Frozen<ResourceRequirements>

export interface ContainerResize {
  readonly container: FrozenContainer
  readonly record: ContainerRecord
  readonly before: Resources
  readonly resources: Resources
}

export interface ResizePlan {
  /** Containers that shrink are first, because they make room for those that grow. */
  readonly update: readonly ContainerResize[]
  readonly restart: readonly ContainerResize[]
}

const resized = ['cpu', 'memory'] as const
type Resized = (typeof resized)[number]

const read = (name: Resized) => (name === 'cpu' ? milliUnits : quantity)

/** Which of cpu and memory differ between what something has and what it should have. */
export function changedResources(before: Resources | undefined, after: Resources | undefined): Resized[] {
  return resized.filter((name) => {
    const value = read(name)
    return value(before?.requests?.[name]) !== value(after?.requests?.[name]) || value(before?.limits?.[name]) !== value(after?.limits?.[name])
  })
}

const resizable = ({ spec }: FrozenPod) => [...(spec.initContainers ?? []), ...spec.containers]

/** Whether the pods' containers, or the pods as a whole, ask for different things. */
export function isResized(before: FrozenPod, after: FrozenPod): boolean {
  const own = new Map(resizable(before).map((container) => [container.name, container.resources]))
  const differs = (container: FrozenContainer) => own.has(container.name) && changedResources(own.get(container.name), container.resources).length > 0
  return changedResources(before.spec.resources, after.spec.resources).length > 0 || resizable(after).some(differs)
}

/** Whether the pod then asks for more than before. */
export function isGrowing(before: FrozenPod, after: FrozenPod): boolean {
  const [had, wants] = [podRequests(before), podRequests(after)]
  return resized.some((name) => (wants[name] ?? 0) > (had[name] ?? 0))
}

/** @param applied the resources that a running container has; undefined when they are unknown, which counts as no change */
export function planResize(pod: FrozenPod, status: PodRuntimeStatus, applied: (record: ContainerRecord) => Resources | undefined): ResizePlan {
  const candidates = resizable(pod).flatMap((container) => {
    const record = findContainer(status, container.name)
    const before = record?.state === 'running' ? applied(record) : undefined
    if (!record || !before) return []
    const resources = effectiveResources(pod, container)
    const changed = changedResources(before, resources)
    return changed.length > 0 ? [{ container, record, before, resources, changed }] : []
  })
  const mustRestart = ({ container, changed }: (typeof candidates)[number]) =>
    changed.some((name) => container.resizePolicy?.find((policy) => policy.resourceName === name)?.restartPolicy === 'RestartContainer')
  const update = candidates.filter((candidate) => !mustRestart(candidate))
  const shrinks = ({ before, resources, changed }: (typeof candidates)[number]) =>
    changed.every((name) => limitOf(resources, name) < limitOf(before, name) || read(name)(resources.requests?.[name]) < read(name)(before.requests?.[name]))
  return { update: [...update.filter(shrinks), ...update.filter((candidate) => !shrinks(candidate))], restart: candidates.filter(mustRestart) }
}

/** No limit is more than any. */
export function limitOf(resources: Resources | undefined, name: Resized): number {
  const text = resources?.limits?.[name]
  return text === undefined ? Number.POSITIVE_INFINITY : read(name)(text)
}

export interface ResizeRoom {
  readonly allocatable: Readonly<Record<string, string>>
  readonly cpuPolicy: string
  readonly memoryPolicy: string
  /** Whether pods may be resized as a whole. */
  readonly podLevel: boolean
}

export type ResizeRefusal =
  | { readonly reason: 'Deferred'; readonly message: string }
  /** `detail`: as metrics call it. */
  | { readonly reason: 'Infeasible'; readonly message: string; readonly detail: string }

/**
 * Undefined: the node can give it now.
 * @param allocated the pod with what it has been given
 * @param others the other pods with what they have been given
 */
export function refuseResize(pod: FrozenPod, allocated: FrozenPod, others: readonly FrozenPod[], room: ResizeRoom): ResizeRefusal | undefined {
  const never = (detail: string, message: string): ResizeRefusal => ({ reason: 'Infeasible', message, detail })
  const asWhole = changedResources(allocated.spec.resources, pod.spec.resources).length > 0
  if (asWhole && !room.podLevel) return never('plr_feature_gate_off', 'InPlacePodLevelResourcesVerticalScaling is disabled')
  const [had, wants] = [containerRequests(allocated), containerRequests(pod)]
  const changes = (name: Resized) => resizable(pod).some((container) => had(container.name, name) !== wants(container.name, name))
  if (podQosClass(pod) === 'Guaranteed') {
    if (room.cpuPolicy === 'static' && changes('cpu')) return never('guaranteed_pod_cpu_manager_static_policy', besidePolicy('CPU', 'static'))
    if (room.memoryPolicy === 'Static' && changes('memory')) return never('guaranteed_pod_memory_manager_static_policy', besidePolicy('Memory', 'Static'))
  }
  const refusal = admitPod(pod, others, { allocatable: room.allocatable, pressure: { memory: false, disk: false, pid: false } })
  return refusal && { reason: 'Deferred', message: refusal.message }
}

const besidePolicy = (manager: string, policy: string) => `Resize is infeasible for Guaranteed Pods alongside ${manager} Manager policy "${policy}"`

function containerRequests(pod: FrozenPod) {
  const byName = new Map(resizable(pod).map((container) => [container.name, container.resources]))
  return (container: string, name: Resized) => read(name)(byName.get(container)?.requests?.[name])
}

export interface PendingResize {
  readonly pod: FrozenPod
  readonly allocated: FrozenPod
  readonly sinceMs: number
}

/** Sorts resizes: first those that request nothing more, then by priority, then Guaranteed pods, then by waiting time. */
export function resizeOrder(pending: readonly PendingResize[]): PendingResize[] {
  const rank = ({ pod, allocated, sinceMs }: PendingResize) => [
    isGrowing(allocated, pod) ? 1 : 0,
    -(pod.spec.priority ?? 0),
    podQosClass(pod) === 'Guaranteed' ? 0 : 1,
    sinceMs,
  ]
  return pending
    .map((entry) => ({ entry, ranks: rank(entry) }))
    .sort((a, b) => a.ranks.map((value, index) => value - (b.ranks[index] ?? 0)).find((difference) => difference !== 0) ?? 0)
    .map(({ entry }) => entry)
}

/** Memory no more than what is in use now would end processes: undefined when no limit is so low. */
export function memoryDecreaseError(
  limits: readonly { readonly what: string; readonly limitBytes: number; readonly usageBytes: number }[],
): string | undefined {
  const errors = limits
    .filter(({ limitBytes, usageBytes }) => limitBytes <= usageBytes)
    .map(({ what, limitBytes, usageBytes }) => `attempting to set ${what} memory limit (${limitBytes}) below current usage (${usageBytes})`)
  if (errors.length === 0) return undefined
  return `cannot decrease memory limits: ${errors.length === 1 ? errors[0] : `[${errors.join(', ')}]`}`
}

/** A limit in bytes; 0 without one. */
export const memoryLimitBytes = (resources: Resources | undefined): number => wholeUnits(resources?.limits?.memory)

const inGoOrder = ({ limits, requests, claims }: Resources = {}) => ({
  ...(limits ? { limits } : {}),
  ...(requests ? { requests } : {}),
  ...(claims ? { claims } : {}),
})

/**
 * The message of a resize's event: what it is about as JSON.
 * @param generation of the pod that asked for it
 */
export function resizeMessage(prefix: string, pod: FrozenPod, generation: number, error = ''): string {
  const parts = (containers: readonly FrozenContainer[] | undefined) =>
    (containers ?? []).map(({ name, resources }) => ({ name, resources: inGoOrder(resources) }))
  const { initContainers, containers } = pod.spec
  const summary = {
    ...(initContainers?.length ? { initContainers: parts(initContainers) } : {}),
    containers: parts(containers),
    generation,
    ...(error ? { error } : {}),
  }
  return `${prefix}: ${JSON.stringify(summary)}`
}
