/** Prefers nodes whose resources would be used to a like degree (L3). Upstream: plugins/noderesources/balanced_allocation.go. */
import { definePlugin, maxNodeScore } from '../framework/plugin.ts'

export const nodeResourcesBalancedAllocation = definePlugin('NodeResourcesBalancedAllocation', () => ({
  requeueOn: [],
  // A pod that asks for nothing says nothing about balance; scoring it would pile such pods on one node.
  preScore: (_state, { requests }) => ((requests.cpu ?? 0) === 0 && (requests.memory ?? 0) === 0 ? 'skip' : undefined),
  score: (_state, pod, { allocatable, requested }) => {
    const cpu = allocatable.cpu ?? 0
    const memory = allocatable.memory ?? 0
    if (cpu === 0 || memory === 0) return maxNodeScore
    const cpuShare = Math.min(1, ((requested.cpu ?? 0) + (pod.requests.cpu ?? 0)) / cpu)
    const memoryShare = Math.min(1, ((requested.memory ?? 0) + (pod.requests.memory ?? 0)) / memory)
    return Math.floor((1 - Math.abs(cpuShare - memoryShare) / 2) * maxNodeScore)
  },
}))
