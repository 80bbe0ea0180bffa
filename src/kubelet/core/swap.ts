/**
 * Limits the swap of containers (L3, pure): none, or for Burstable pods on cgroup v2 a part of the node's swap in proportion to the requested memory.
 * Upstream: kuberuntime_container_linux.go GetContainerSwapBehavior, calcSwapForBurstablePods (v1.36).
 */
import type { LinuxContainerResources } from '#grpc/criTypes'
import type { FrozenContainer, FrozenPod } from './containers.ts'
import { isCriticalPod } from './criticalPods.ts'
import { wholeUnits } from './quantities.ts'

/** The facts that limits of swap depend on, for a kernel that can limit swap. */
export interface SwapOptions {
  readonly cgroupVersion: 1 | 2
  /** memorySwap.swapBehavior: LimitedSwap, NoSwap, or empty, which is NoSwap. */
  readonly swapBehavior: string
  readonly memoryBytes: number
  readonly swapBytes: number
}

type SwapLimits = Pick<LinuxContainerResources, 'unified' | 'memorySwapLimitInBytes'>

/** @param memoryLimitBytes of the container; 0: none */
export function swapLimits(pod: FrozenPod, qosClass: string, container: FrozenContainer, memoryLimitBytes: number, options: SwapOptions): SwapLimits {
  // Cgroup v1 limits memory and swap together: no more than the memory alone. Without a limit of memory there is none of swap.
  if (options.cgroupVersion === 1) return memoryLimitBytes > 0 ? { memorySwapLimitInBytes: memoryLimitBytes } : {}
  return { unified: { 'memory.swap.max': String(maySwap(pod, qosClass, container, options) ? shareOfSwap(container, options) : 0) } }
}

function maySwap(pod: FrozenPod, qosClass: string, { resources }: FrozenContainer, { swapBehavior }: SwapOptions): boolean {
  const [request, limit] = [wholeUnits(resources?.requests?.memory), wholeUnits(resources?.limits?.memory)]
  return swapBehavior === 'LimitedSwap' && qosClass === 'Burstable' && !isCriticalPod(pod) && request !== limit
}

function shareOfSwap({ resources }: FrozenContainer, { memoryBytes, swapBytes }: SwapOptions): number {
  const request = wholeUnits(resources?.requests?.memory)
  return memoryBytes > 0 && request <= memoryBytes ? Math.trunc((request / memoryBytes) * swapBytes) : 0
}
