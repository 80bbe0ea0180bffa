/**
 * One measurement of the node and its containers as values (L3): the figures of /metrics/resource, for a reader in this process, where a text would be
 * written only to be parsed again.
 */
import type { ContainerStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { FrozenPod } from '../../core/containers.ts'
import type { KubeletView } from '../../core/kubeletView.ts'
import { createUsageSource, type GroupUsage, type NodeUsage } from './usage.ts'

export interface ResourcePoint {
  /** 0: unknown. */
  readonly startedAtMs: number
  readonly atMs: number
  readonly cpuNs: number
  readonly memoryBytes: number
}

export interface ResourceSample {
  readonly node: ResourcePoint
  /** By `namespace/name` of the pod, then by name of the container. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, ResourcePoint>>
}

/** How long an answer is kept. */
const keptMs = 5000

/** Measures when it is called, or answers with a measurement of the last seconds. */
export function createResourceSampler(view: KubeletView, clock: Clock): () => Promise<ResourceSample> {
  const source = createUsageSource(view, clock)
  const simulated = createSimulatedSampler(view, clock)
  return async () => (view.context()?.host ? sampleOf(await source.now()) : simulated())
}

function sampleOf({ node, pods }: NodeUsage): ResourceSample {
  const containersOf = pods.map(({ pod: { metadata }, containers }) => {
    const points = new Map(containers.map((container) => [container.container, pointOf(container, container.startedAtMs)]))
    return [`${metadata.namespace}/${metadata.name}`, points] as const
  })
  return { node: pointOf(node), pods: new Map(containersOf) }
}

function pointOf({ atMs, cpuNs, memory }: GroupUsage, startedAtMs = 0): ResourcePoint {
  return { startedAtMs, atMs, cpuNs, memoryBytes: memory.workingSetBytes }
}

/**
 * The same of a simulated node, from what its runtime reports and without the other figures of a group: tens of thousands of pods are measured every fifteen
 * seconds.
 */
function createSimulatedSampler(view: KubeletView, clock: Clock): () => Promise<ResourceSample> {
  let last: { readonly untilMs: number; readonly sample: Promise<ResourceSample> } | undefined
  /** CPU time of running containers by id, at the last measurement. */
  let before = new Map<string, number>()
  let endedNs = 0

  const take = async (): Promise<ResourceSample> => {
    const stats = new Map((await view.runtime.listContainerStats()).map((entry) => [entry.attributes.id, entry]))
    const now = new Map<string, number>()
    const pods = new Map<string, ReadonlyMap<string, ResourcePoint>>()
    const sum = { atMs: 0, cpuNs: 0, memoryBytes: 0 }
    for (const pod of view.pods()) {
      const points = new Map<string, ResourcePoint>()
      for (const { name, containerID = '', state } of reportedContainers(view, pod)) {
        const id = containerID.slice(containerID.indexOf('://') + 3)
        const { cpu, memory } = stats.get(id) ?? {}
        if (!cpu || !memory) continue
        const startedAt = state?.running?.startedAt
        const [cpuNs, memoryBytes] = [cpu.usageCoreNanoSeconds?.value ?? 0, memory.workingSetBytes?.value ?? 0]
        const point = { startedAtMs: startedAt ? Date.parse(startedAt) : 0, atMs: Math.round(cpu.timestamp / 1e6), cpuNs, memoryBytes }
        points.set(name, point)
        now.set(id, cpuNs)
        // The containers tell when they were measured, which is later than the question was asked.
        sum.atMs ||= point.atMs
        sum.cpuNs += cpuNs
        sum.memoryBytes += memoryBytes
      }
      if (points.size > 0) pods.set(`${pod.metadata.namespace}/${pod.metadata.name}`, points)
    }
    // The CPU time of containers that have ended stays part of the node's, whose counter never falls.
    for (const [id, cpuNs] of before) if (!now.has(id)) endedNs += cpuNs
    before = now
    return { node: { startedAtMs: 0, atMs: sum.atMs || clock.now(), cpuNs: sum.cpuNs + endedNs, memoryBytes: sum.memoryBytes }, pods }
  }

  return () => {
    if (last && last.untilMs > clock.now()) return last.sample
    const entry = { untilMs: clock.now() + keptMs, sample: take() }
    last = entry
    entry.sample.catch(() => {
      if (last === entry) last = undefined
    })
    return entry.sample
  }
}

function* reportedContainers(view: KubeletView, pod: FrozenPod): Iterable<Frozen<ContainerStatus>> {
  const status = view.podStatus(pod.metadata.uid ?? '') ?? pod.status
  yield* status?.containerStatuses ?? []
  yield* status?.initContainerStatuses ?? []
  yield* status?.ephemeralContainerStatuses ?? []
}
