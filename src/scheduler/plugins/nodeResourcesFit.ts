/**
 * Refuses nodes without room for the pod's requests, and prefers the emptier ones: strategy LeastAllocated over cpu and memory (L3).
 * Upstream: plugins/noderesources/fit.go, least_allocated.go.
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { amountsOf, podRequests } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { actions, on } from '../framework/clusterEvent.ts'
import type { NodeInfo } from '../framework/nodeInfo.ts'
import { definePlugin, maxNodeScore } from '../framework/plugin.ts'
import type { PodInfo } from '../framework/podInfo.ts'
import { type Refusal, reasons } from '../framework/status.ts'

export const nodeResourcesFit = definePlugin('NodeResourcesFit', () => ({
  requeueOn: [
    on('AssignedPod', actions.Delete | actions.UpdatePodScaleDown),
    on('TargetPod', actions.UpdatePodScaleDown),
    on('Node', actions.Add | actions.UpdateNodeAllocatable | actions.UpdateNodeTaint | actions.UpdateNodeLabel, (pod, { old, object }) =>
      object ? nodeMayHelp(pod, old, object) : false,
    ),
  ],
  filter: (_state, pod, node) => insufficient(pod, node),
  score: (_state, pod, node) => {
    const cpu = leastRequested(node.nonZeroMilliCpu + pod.nonZeroMilliCpu, node.allocatableMilliCpu)
    const memory = leastRequested(node.nonZeroMemory + pod.nonZeroMemory, node.allocatableMemory)
    if (cpu < 0) return Math.max(0, memory)
    return memory < 0 ? cpu : Math.floor((cpu + memory) / 2)
  },
}))

/** Whether nothing is short: the question asked of most nodes. */
function fits(pod: PodInfo, node: NodeInfo): boolean {
  if (node.podCount >= node.allocatablePods) return false
  if (pod.milliCpu > 0 && pod.milliCpu > node.allocatableMilliCpu - node.requestedMilliCpu) return false
  if (pod.memory > 0 && pod.memory > node.allocatableMemory - node.requestedMemory) return false
  for (const name of pod.otherResources) if ((pod.requests[name] ?? 0) > (node.allocatable[name] ?? 0) - (node.requested[name] ?? 0)) return false
  return true
}

/** One reason per resource that is short. A request beyond the whole node is unresolvable: no preemption can help. */
function insufficient(pod: PodInfo, node: NodeInfo): Refusal | undefined {
  if (fits(pod, node)) return undefined
  const short: string[] = []
  let beyondNode = false
  const { allocatable, requested } = node
  if (node.podCount >= node.allocatablePods) short.push(reasons.tooManyPods)
  for (const name of resourceOrder(pod.requests)) {
    const wanted = pod.requests[name] ?? 0
    if (wanted === 0 || wanted <= (allocatable[name] ?? 0) - (requested[name] ?? 0)) continue
    short.push(reasons.insufficient(name))
    if (wanted > (allocatable[name] ?? 0)) beyondNode = true
  }
  return { code: beyondNode ? 'UnschedulableAndUnresolvable' : 'Unschedulable', reasons: short }
}

const first = ['cpu', 'memory', 'ephemeral-storage']

function resourceOrder(requests: Readonly<Record<string, number>>): string[] {
  return [...first.filter((name) => name in requests), ...Object.keys(requests).filter((name) => !first.includes(name))]
}

/** -1: the node has none of it. */
function leastRequested(requested: number, capacity: number): number {
  if (capacity === 0) return -1
  return requested > capacity ? 0 : Math.floor(((capacity - requested) * maxNodeScore) / capacity)
}

/** The pod's requests fit the empty node; when the node is not new, that has to be news. */
function nodeMayHelp(pod: Frozen<Pod>, old: Frozen<Node> | undefined, node: Frozen<Node>): boolean {
  const wanted = podRequests(pod)
  const allocatable = amountsOf(node.status?.allocatable)
  if (old && old.status?.allocatable !== node.status?.allocatable) {
    const before = amountsOf(old.status?.allocatable)
    const grew = Object.keys({ ...wanted, pods: 1 }).some((name) => (allocatable[name] ?? 0) > (before[name] ?? 0))
    if (!grew) return false
  }
  return Object.keys(wanted).every((name) => (wanted[name] ?? 0) <= (allocatable[name] ?? 0))
}
