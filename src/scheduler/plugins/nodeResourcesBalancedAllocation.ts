/** Prefers nodes whose resources would be used to a like degree (L3). Upstream: plugins/noderesources/balanced_allocation.go. */
import { definePlugin, maxNodeScore } from '../framework/plugin.ts'

export const nodeResourcesBalancedAllocation = definePlugin('NodeResourcesBalancedAllocation', () => ({
  requeueOn: [],
  // A pod that asks for nothing says nothing about balance; scoring it would pile such pods on one node.
  preScore: (_state, { milliCpu, memory }) => (milliCpu === 0 && memory === 0 ? 'skip' : undefined),
  score: (_state, pod, node) => {
    if (node.allocatableMilliCpu === 0 || node.allocatableMemory === 0) return maxNodeScore
    const cpu = Math.min(1, (node.requestedMilliCpu + pod.milliCpu) / node.allocatableMilliCpu)
    const memory = Math.min(1, (node.requestedMemory + pod.memory) / node.allocatableMemory)
    return Math.floor((1 - Math.abs(cpu - memory) / 2) * maxNodeScore)
  },
}))
