/**
 * How full a node would be with the pod, resource by resource: what the resource scores are made of (L3).
 * Upstream: plugins/noderesources/resource_allocation.go (v1.36).
 */
import type { NodeInfo } from '../framework/nodeInfo.ts'
import type { ResourceSpec } from '../framework/pluginArgs.ts'
import type { PodInfo } from '../framework/podInfo.ts'

/** Use of one resource on one node. */
export interface ResourceUse {
  readonly weight: number
  /** With the pod, and without it. */
  readonly requested: number
  readonly before: number
  readonly allocatable: number
}

/**
 * The resources that count: those that the node has, and of the countable ones those that the pod asks for.
 * @param nonZero cpu and memory of containers that ask for none count as a little
 */
export function resourceUses(resources: readonly ResourceSpec[], pod: PodInfo, node: NodeInfo, nonZero: boolean): ResourceUse[] {
  const uses: ResourceUse[] = []
  for (const { name, weight } of resources) {
    const use = (allocatable: number, before: number, own: number) => {
      if (allocatable > 0) uses.push({ weight, requested: before + own, before, allocatable })
    }
    if (name === 'cpu') use(node.allocatableMilliCpu, nonZero ? node.nonZeroMilliCpu : node.requestedMilliCpu, nonZero ? pod.nonZeroMilliCpu : pod.milliCpu)
    else if (name === 'memory') use(node.allocatableMemory, nonZero ? node.nonZeroMemory : node.requestedMemory, nonZero ? pod.nonZeroMemory : pod.memory)
    else if (name === 'ephemeral-storage' || (pod.requests[name] ?? 0) > 0) use(node.allocatable[name] ?? 0, node.requested[name] ?? 0, pod.requests[name] ?? 0)
  }
  return uses
}

/** What the resource plugins look at of a pod, as text. */
export function requestsText({ requests, otherResources, milliCpu, memory, nonZeroMilliCpu, nonZeroMemory }: PodInfo): string {
  let text = `${milliCpu}/${memory}/${nonZeroMilliCpu}/${nonZeroMemory}`
  for (const name of otherResources) text += `/${name}=${requests[name]}`
  return text
}
