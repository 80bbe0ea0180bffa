/** The status of a cluster as it is printed (L4): simulated nodes, of which there may be ten thousand, are counted, and listed only when asked for. */
import type { ClusterStatus } from './clusterManager.ts'

export interface ShownStatus extends ClusterStatus {
  readonly simulatedNodes: { readonly count: number; readonly ready: number }
}

export function withSimulatedNodes(found: ClusterStatus): ShownStatus {
  const simulated = found.nodes.filter(({ runtime }) => runtime === 'simulated')
  return { ...found, simulatedNodes: { count: simulated.length, ready: simulated.filter(({ ready }) => ready).length } }
}

export function withoutSimulatedNodes(found: ClusterStatus): ShownStatus {
  return { ...withSimulatedNodes(found), nodes: found.nodes.filter(({ runtime }) => runtime !== 'simulated') }
}
