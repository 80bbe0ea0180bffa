/** The layouts of a local cluster's processes (L5), and which one a server takes. */

import type { ClusterState } from '../../localCluster/clusterState.ts'
import { isReplicated } from '../../localCluster/controlPlanes.ts'
import { simulatedNodesOf } from '../../localCluster/simulatedPlan.ts'
import type { ProcessLayout } from './layout.ts'
import { single } from './single.ts'
import { split } from './split.ts'

export const layouts: readonly ProcessLayout[] = [single, split]

/** So many simulated nodes keep a core busy: fewer are not worth 100 MB a process and requests over the wire. */
const worthSplitting = 500
/** With two, the parts would only take turns. */
const fewCores = 2

/**
 * The layout that the cluster was made with; without one, or with `auto`, split where it pays. Several servers hand the work to each other and stay single.
 * @param cores what this process may use
 */
export function layoutOf(state: ClusterState, cores: number): ProcessLayout {
  const asked = layouts.find(({ name }) => name === state.layout)
  if (asked) return asked
  const pays = cores > fewCores && !isReplicated(state) && simulatedNodesOf(state).length >= worthSplitting
  return pays ? split : single
}
