/** Prefers nodes whose cpu and memory would be used to a like degree (L3). Upstream: plugins/noderesources/balanced_allocation.go. */
import { maxNodeScore, type SchedulerPlugin } from '../framework/plugin.ts'

export const nodeResourcesBalancedAllocation: SchedulerPlugin = {
  name: 'NodeResourcesBalancedAllocation',
  // A pod that asks for nothing says nothing about balance; scoring it would pile such pods on one node.
  preScore: (_state, { requests }) => ((requests.cpu ?? 0) === 0 && (requests.memory ?? 0) === 0 ? 'skip' : undefined),
  score: (_state, pod, node) => {
    const fractions = ['cpu', 'memory'].flatMap((name) => {
      const allocatable = node.allocatable[name] ?? 0
      return allocatable === 0 ? [] : [Math.min(1, ((node.requested[name] ?? 0) + (pod.requests[name] ?? 0)) / allocatable)]
    })
    const [cpu, memory] = fractions
    const deviation = cpu === undefined || memory === undefined ? 0 : Math.abs((cpu - memory) / 2)
    return Math.floor((1 - deviation) * maxNodeScore)
  },
}
