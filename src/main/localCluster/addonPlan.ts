/** How an addon of a local cluster is turned on and off (L5). */
import type { Addon } from '#cli/clusterManager'
import type { ApiProbe } from './apiProbe.ts'
import type { ClusterPaths, ClusterState } from './clusterState.ts'

export interface AddonPlan {
  readonly name: Addon
  /** For people. */
  readonly title: string
  /** The member of the description that says whether it is wanted. */
  readonly key: 'ingress' | 'csiHostPath'
  /** @throws CommandError unmetPrerequisite for a cluster that cannot have it */
  check?(realNodes: number): void
  /** @throws CommandError while something in the cluster needs it */
  checkRemoval?(probe: ApiProbe, paths: ClusterPaths, state: ClusterState): Promise<void>
  isThere(state: ClusterState, probe: ApiProbe): Promise<true | undefined>
  isGone(state: ClusterState, probe: ApiProbe): Promise<true | undefined>
}
