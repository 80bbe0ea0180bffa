/** Starts the real nodes of a local cluster (L5), each with its link to the cluster's bridge. `up` does it, and the supervisor when a node has ended. */
import type { Clock } from '#base/clock'
import type { Exec } from '#host/exec'
import type { ProcessRef } from '#host/processes'
import { ensureNodeNetwork, nodeNetwork } from '../vnode/clusterNetwork.ts'
import { ensureVnode } from '../vnode/vnode.ts'
import { type ClusterPaths, type ClusterState, markVariable, type RealNode } from './clusterState.ts'
import { hostResolvConf } from './hostResolver.ts'

export interface NodeTools {
  readonly clock: Clock
  readonly exec: Exec
}

/** Does nothing for a node that runs. @returns its process 1 */
export async function ensureNode({ clock, exec }: NodeTools, paths: ClusterPaths, state: ClusterState, node: RealNode): Promise<ProcessRef> {
  const { network } = state
  if (!network) throw new Error('a cluster with real nodes has a network')
  const link = nodeNetwork(network, state.id, node.index)
  const spec = { name: node.name, dir: paths.node(node.name), network: link, resolvConf: await hostResolvConf(), environment: { [markVariable]: paths.dir } }
  return ensureVnode(spec, clock, () => ensureNodeNetwork(exec, network, link))
}
