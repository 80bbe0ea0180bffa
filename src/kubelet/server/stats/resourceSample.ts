/**
 * One measurement of the node and its containers as values (L3): the figures of /metrics/resource, for a reader in this process, where a text would be
 * written only to be parsed again.
 */
import type { Clock } from '#base/clock'
import type { KubeletView } from '../../core/kubeletView.ts'
import { createUsageSource, type GroupUsage } from './usage.ts'

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

/** Measures when it is called, or answers with a measurement of the last seconds. */
export function createResourceSampler(view: KubeletView, clock: Clock): () => Promise<ResourceSample> {
  const source = createUsageSource(view, clock)
  return async () => {
    const { node, pods } = await source.now()
    const containersOf = pods.map(({ pod: { metadata }, containers }) => {
      const points = new Map(containers.map((container) => [container.container, pointOf(container, container.startedAtMs)]))
      return [`${metadata.namespace}/${metadata.name}`, points] as const
    })
    return { node: pointOf(node), pods: new Map(containersOf) }
  }
}

function pointOf({ atMs, cpuNs, memory }: GroupUsage, startedAtMs = 0): ResourcePoint {
  return { startedAtMs, atMs, cpuNs, memoryBytes: memory.workingSetBytes }
}
