/**
 * The nodes and pods that plugins read (L3). This is the scheduler's cache itself: a cycle decides without yielding, so nothing has to be
 * copied for it. Upstream: kube-scheduler/framework/listers.go SharedLister.
 */
import type { NodeInfo } from './nodeInfo.ts'
import type { PodInfo } from './podInfo.ts'

/** The cluster as a scheduling cycle sees it: every node with its pods. */
export interface Snapshot {
  /** Zones take turns. */
  readonly nodes: readonly NodeInfo[]
  get(name: string): NodeInfo | undefined
  /** The number of nodes that have an image. */
  imageNodes(name: string): number
  /** Nodes with pods that have any affinity or anti-affinity; and with pods that have required anti-affinity. */
  readonly nodesWithAffinityPods: ReadonlySet<NodeInfo>
  readonly nodesWithRequiredAntiAffinityPods: ReadonlySet<NodeInfo>
  /** Whether a placed (or assumed) pod uses the claim `namespace/name`. */
  isPvcUsed(key: string): boolean
}

/** Data that a plugin keeps in step with the placed pods, instead of counting them again for each pod (see Handle.maintain). */
export interface PlacementIndex {
  podAdded(pod: PodInfo, node: NodeInfo): void
  podRemoved(pod: PodInfo, node: NodeInfo): void
  /** In place of both, for a pod that stays on its node. */
  podChanged?(before: PodInfo, pod: PodInfo, node: NodeInfo): void
  /** The node appeared or changed; its pods are reported separately, before or after. */
  nodeSet?(node: NodeInfo): void
  nodeRemoved?(node: NodeInfo): void
}
