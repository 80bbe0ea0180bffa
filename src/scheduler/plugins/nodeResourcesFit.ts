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
    const cpu = leastRequested(node.nonZeroMilliCpu + pod.nonZeroMilliCpu, node.allocatable.cpu ?? 0)
    const memory = leastRequested(node.nonZeroMemory + pod.nonZeroMemory, node.allocatable.memory ?? 0)
    if (cpu === undefined) return memory ?? 0
    return memory === undefined ? cpu : Math.floor((cpu + memory) / 2)
  },
}))

/** One reason per resource that is short. A request beyond the whole node is unresolvable: no preemption can help. */
function insufficient(pod: PodInfo, node: NodeInfo): Refusal | undefined {
  const short: string[] = []
  let beyondNode = false
  if (node.pods.size + 1 > (node.allocatable.pods ?? 0)) short.push(reasons.tooManyPods)
  const { allocatable, requested } = node
  let full = false
  for (const name in pod.requests) {
    const wanted = pod.requests[name] as number
    if (wanted > 0 && wanted > (allocatable[name] ?? 0) - (requested[name] ?? 0)) full = true
  }
  if (!full && short.length === 0) return undefined
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

function leastRequested(requested: number, capacity: number): number | undefined {
  if (capacity === 0) return undefined
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
