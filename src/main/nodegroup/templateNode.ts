/**
 * The Node that a group would get next (L5, pure), as its kubelet would report it: an autoscaler tries pods on it while the group is empty.
 * Upstream: TemplateNodeInfo of cluster-autoscaler's cloud providers.
 */
import type { Node } from '#api/gen/types/core.v1'
import { kubeletConfig } from '#kubelet/core/config'
import { initialNode, nodeStatus } from '#kubelet/node/nodeStatus'
import { simulatedNodeConfig } from '../layouts/simulatedNodeConfig.ts'
import type { ClusterState } from '../localCluster/clusterState.ts'
import { nextNumbers } from '../localCluster/nodeGroupPlan.ts'
import { groupNode, type NodeGroup } from '../localCluster/simulatedPlan.ts'

/** Ready, without pods and without an address. */
export function templateNode(state: ClusterState, group: NodeGroup, nowMs: number): Node {
  const [number = 1] = nextNumbers(state, 1)
  const { machine, config } = simulatedNodeConfig(groupNode(state.name, group, number), state.nodes.length > 0)
  const whole = kubeletConfig(config)
  const facts = { machine, runtime: undefined, problems: [], images: [], pressure: { memory: false, disk: false, pid: false }, nowMs }
  return initialNode(nodeStatus(undefined, facts, whole), machine, whole)
}
