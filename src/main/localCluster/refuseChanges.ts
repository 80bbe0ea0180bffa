/** Tells a user who asks an existing cluster for something else (L5) that it stays as it was made. Pure. */
import type { UpOptions } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import { publishedText } from '#cli/publishedPorts'
import { familiesOf } from '../vnode/ranges.ts'
import { addressPlanOf } from './addressPlan.ts'
import type { ClusterState } from './clusterState.ts'

/** @throws CommandError alreadyExists that names each flag that differs, what the cluster has, and the two ways out. */
export function refuseChanges(state: ClusterState, options: UpOptions): void {
  const { asked, port, reach = {} } = state
  const { clusterCidr, serviceCidr } = addressPlanOf(state)
  const differing = [
    ...differs('--nodes', options.nodes, asked?.nodes),
    ...differs('--simulated-nodes', options.simulatedNodes, asked?.simulatedNodes),
    ...differs('--runtime', options.runtime === 'auto' ? undefined : options.runtime, asked?.runtime),
    ...differs('--etcd', options.etcd, asked?.etcd ?? 0),
    ...differs('--control-planes', options.controlPlanes, asked?.controlPlanes ?? 1),
    ...differs('--port', options.port === 0 ? undefined : options.port, port),
    ...differs('--pod-cidr', options.podCidr, clusterCidr),
    ...differs('--service-cidr', options.serviceCidr, serviceCidr),
    ...differs('--pod-network', options.podNetwork, state.podNetwork ?? 'host-gw'),
    ...differs('--publish', options.publish && publishedText(options.publish), publishedText(state.publish ?? []) || 'none'),
    ...differs('--ip-families', options.ipFamilies, familiesOf(clusterCidr)),
    ...differs('--apiserver-advertise-address', options.advertiseAddress, reach.advertiseAddress ?? 'none'),
    ...differs('--control-plane-endpoint', options.controlPlaneEndpoint, reach.controlPlaneEndpoint ?? 'none'),
    ...differs('--apiserver-cert-extra-sans', options.certNames?.join(','), reach.certNames?.join(',') ?? 'none'),
  ]
  if (differing.length === 0) return
  throw new CommandError('alreadyExists', `cluster "${state.name}" is there and cannot be changed: ${differing.join(', ')}`, {
    hint: `leave the flags out to start it as it is, name another cluster, or delete this one first: skiff delete ${state.name}`,
  })
}

function differs<T>(flag: string, wanted: T | undefined, has: T | undefined): string[] {
  return wanted === undefined || has === undefined || wanted === has ? [] : [`${flag} ${wanted} was asked for, it was made with ${has}`]
}
