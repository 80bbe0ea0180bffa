/**
 * A scheduler plugin for GPUs of several types. A pod asks for `nvidia.com/gpu` and names the type it needs in the annotation `example.com/gpu-type`;
 * nodes have the label `example.com/gpu-type`. Nodes of another type are refused; of the others the plugin prefers those that will have the
 * fewest GPUs left, an exact fit scoring 100, so that whole nodes stay free for big pods. Other pods are not affected.
 *
 * Only types are imported, so the file runs wherever Node can read it.
 */
import type { Handle, NodeInfo, PodInfo, SchedulerPlugin } from 'skiff-kubernetes/scheduler'

interface GpuTypeArgs {
  /** Default: nvidia.com/gpu. */
  readonly resource?: string
}

const typeKey = 'example.com/gpu-type'

export const gpuType = {
  name: 'GpuType',
  create: ({ resource = 'nvidia.com/gpu' }: GpuTypeArgs, _handle: Handle): SchedulerPlugin => {
    const wanted = (pod: PodInfo) => pod.requests[resource] ?? 0
    const free = (node: NodeInfo) => (node.allocatable[resource] ?? 0) - (node.requested[resource] ?? 0)
    return {
      name: 'GpuType',
      preFilter: (_state, pod) => (wanted(pod) === 0 ? 'skip' : undefined),
      filter: (_state, { pod }, { node }) => {
        const type = pod.metadata.annotations?.[typeKey]
        if (type === undefined || node.metadata.labels?.[typeKey] === type) return undefined
        return { code: 'UnschedulableAndUnresolvable', reasons: [`node(s) had no GPU of type ${type}`] }
      },
      preScore: (_state, pod) => (wanted(pod) === 0 ? 'skip' : undefined),
      score: (_state, pod, node) => {
        const left = free(node) - wanted(pod)
        return left === 0 ? 100 : Math.max(0, 90 - 10 * left)
      },
    }
  },
}
