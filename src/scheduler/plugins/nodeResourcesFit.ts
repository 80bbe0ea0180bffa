/**
 * Refuses nodes without room for the pod's requests, and prefers the emptier ones: strategy LeastAllocated over cpu and memory (L3).
 * Upstream: plugins/noderesources/fit.go, least_allocated.go.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { amountsOf, podRequests } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import type { NodeInfo, PodInfo } from '../framework/nodeInfo.ts'
import { type ClusterEvent, maxNodeScore, type SchedulerPlugin } from '../framework/plugin.ts'
import { type Refusal, reasons } from '../framework/status.ts'

export const nodeResourcesFit: SchedulerPlugin = {
  name: 'NodeResourcesFit',
  filter: (_state, pod, node) => insufficient(pod, node),
  score: (_state, pod, node) => {
    const cpu = leastRequested(node.nonZeroMilliCpu + pod.nonZeroMilliCpu, node.allocatable.cpu ?? 0)
    const memory = leastRequested(node.nonZeroMemory + pod.nonZeroMemory, node.allocatable.memory ?? 0)
    const known = [cpu, memory].filter((score) => score !== undefined)
    return known.length === 0 ? 0 : Math.floor(known.reduce((sum, score) => sum + score, 0) / known.length)
  },
  requeueOn: (event, pod) => mayHelp(event, pod),
}

/** One reason per resource that is short. A request beyond the whole node is unresolvable: no preemption can help. */
function insufficient(pod: PodInfo, node: NodeInfo): Refusal | undefined {
  const short: string[] = []
  let beyondNode = false
  if (node.pods.size + 1 > (node.allocatable.pods ?? 0)) short.push(reasons.tooManyPods)
  for (const name of resourceOrder(pod.requests)) {
    const wanted = pod.requests[name] ?? 0
    const allocatable = node.allocatable[name] ?? 0
    if (wanted === 0 || wanted <= allocatable - (node.requested[name] ?? 0)) continue
    short.push(reasons.insufficient(name))
    if (wanted > allocatable) beyondNode = true
  }
  if (short.length === 0) return undefined
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

function mayHelp(event: ClusterEvent, pod: Frozen<Pod>): boolean {
  if (event.type === 'PodDelete') return Boolean(event.pod.spec.nodeName)
  if (event.type === 'PodUpdate') return event.pod.metadata.uid === pod.metadata.uid || Boolean(event.pod.spec.nodeName)
  const wanted = podRequests(pod)
  const allocatable = amountsOf(event.node.status?.allocatable)
  if (event.type === 'NodeUpdate') {
    const before = amountsOf(event.old.status?.allocatable)
    const grew = Object.keys({ ...wanted, pods: 1 }).some((name) => (allocatable[name] ?? 0) > (before[name] ?? 0))
    if (!grew) return false
  }
  return Object.keys(wanted).every((name) => (wanted[name] ?? 0) <= (allocatable[name] ?? 0))
}
