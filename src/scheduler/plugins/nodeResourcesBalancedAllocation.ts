/**
 * Prefers nodes whose resources the pod would bring closer to a like degree of use (L3): 75 changes nothing, 50 is the worst, 100 the best.
 * Upstream: plugins/noderesources/balanced_allocation.go (v1.36).
 */
import { definePlugin, maxNodeScore } from '../framework/plugin.ts'
import type { PodInfo } from '../framework/podInfo.ts'
import { type ResourceUse, requestsText, resourceUses } from './resourceScoring.ts'

export const nodeResourcesBalancedAllocation = definePlugin('NodeResourcesBalancedAllocation', ({ resources }) => {
  const isDefault = resources.length === 2 && resources[0]?.name === 'cpu' && resources[1]?.name === 'memory'
  return {
    requeueOn: [],
    // A pod without requests does not change the balance; scoring it would put all such pods on one node.
    preScore: (_state, pod) => (resources.every(({ name }) => amountOf(pod, name) === 0) ? 'skip' : undefined),
    sign: (pod) => requestsText(pod),
    score: (_state, pod, node) => {
      if (isDefault && node.allocatableMilliCpu > 0 && node.allocatableMemory > 0) {
        const cpuBefore = node.requestedMilliCpu / node.allocatableMilliCpu
        const memoryBefore = node.requestedMemory / node.allocatableMemory
        const cpu = (node.requestedMilliCpu + pod.milliCpu) / node.allocatableMilliCpu
        const memory = (node.requestedMemory + pod.memory) / node.allocatableMemory
        return change(balanceOfTwo(cpu, memory), balanceOfTwo(cpuBefore, memoryBefore))
      }
      const uses = resourceUses(resources, pod, node, false)
      return change(balance(uses, 'requested'), balance(uses, 'before'))
    },
  }
})

function amountOf(pod: PodInfo, name: string): number {
  return pod.requests[name] ?? 0
}

function change(after: number, before: number): number {
  return maxNodeScore / 2 + Math.trunc((maxNodeScore / 2 + after - before) / 2)
}

function balanceOfTwo(a: number, b: number): number {
  return scoreOf(Math.abs(Math.min(1, a) - Math.min(1, b)) / 2)
}

/** By the standard deviation of the shares in use. */
function balance(uses: readonly ResourceUse[], amount: 'requested' | 'before'): number {
  const shares = uses.map((use) => Math.min(1, use[amount] / use.allocatable))
  if (shares.length < 2) return maxNodeScore
  if (shares.length === 2) return balanceOfTwo(shares[0] as number, shares[1] as number)
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length
  return scoreOf(Math.sqrt(shares.reduce((sum, share) => sum + (share - mean) ** 2, 0) / shares.length))
}

function scoreOf(deviation: number): number {
  return Math.floor((1 - deviation) * maxNodeScore)
}
