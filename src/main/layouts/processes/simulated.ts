/** The simulated nodes of a local cluster (L5), as its description plans them. */
import type { Component } from '#base/component'
import { createClient } from '#client/clientOverTransport'
import { addressPlanOf } from '../../localCluster/addressPlan.ts'
import { type ClusterPaths, readState } from '../../localCluster/clusterState.ts'
import { type PlannedNode, simulatedNodesOf } from '../../localCluster/simulatedPlan.ts'
import { live } from '../../pki/livePki.ts'
import { createSimulatedNodes } from '../simulatedNodes.ts'
import type { SimulatedNodesParts, TransportAs } from './layout.ts'

const authenticated = 'system:authenticated'
const manager = { name: 'system:skiff:simulated-nodes', groups: ['system:masters', authenticated] }

export function simulatedNodesComponent(transportAs: TransportAs, parts: SimulatedNodesParts): Component {
  const { tools, state, paths, certificates, ownKubelets, fence, onLook } = parts
  const { pki } = certificates
  const { clusterDns, clusterDomain } = addressPlanOf(state)
  return createSimulatedNodes({
    planned: () => plannedNodes(paths),
    removed: async () => (await readState(paths))?.removedNodes ?? [],
    tools,
    ownKubelets,
    clientOf: (name) => fence(createClient(transportAs({ name: `system:node:${name}`, groups: ['system:nodes', authenticated] }, 'kubelet'))),
    manager: fence(createClient(transportAs(manager, 'kubelet'))),
    clusterDns,
    clusterDomain,
    tainted: state.nodes.length > 0,
    serving: live(() => ({ cert: pki.apiserver.cert, key: pki.apiserver.key, clientCa: pki.ca.cert })),
    onLook,
  })
}

async function plannedNodes(paths: ClusterPaths): Promise<readonly PlannedNode[] | undefined> {
  const state = await readState(paths)
  return state && simulatedNodesOf(state)
}
