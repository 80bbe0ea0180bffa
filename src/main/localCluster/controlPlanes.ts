/**
 * The servers of a local cluster (L5), pure: one, or several behind a balancer. Several servers share an etcd; each listens on a port of its own on loopback, and
 * with real nodes also on an address of its own on the cluster's bridge, under which the `kubernetes` Service lists it.
 */
import path from 'node:path'
import { type ClusterNetwork, gatewayOf, serverAddressOf } from '../vnode/clusterNetwork.ts'

/** As many as etcd has members at most. */
export const mostControlPlanes = 5

export interface ServerPlan {
  /** `server-1`, …; the only server of a cluster is `server`. */
  readonly name: string
  /** On 127.0.0.1. */
  readonly port: number
}

/** Part of a cluster's state. */
interface Servers {
  readonly port: number
  readonly servers?: readonly ServerPlan[] | undefined
}

/** The only server, without a balancer. */
const onlyServer = 'server'

export function serversOf({ servers, port }: Servers): readonly ServerPlan[] {
  return servers ?? [{ name: onlyServer, port }]
}

/** True with several servers: they elect leaders, and clients reach them through the balancer. */
export function isReplicated({ servers }: Pick<Servers, 'servers'>): boolean {
  return servers !== undefined
}

/** The ports of a cluster on 127.0.0.1: the one that clients use first. */
export function apiPortsOf(state: Servers): number[] {
  return [...new Set([state.port, ...serversOf(state).map(({ port }) => port)])]
}

/**
 * The address under which the `kubernetes` Service lists a server, on the cluster's port. Undefined for the only server of a cluster without real nodes. Nothing
 * listens on the addresses of a replicated one: simulated pods do not connect.
 */
export function advertisedAddressOf(state: Servers & { readonly network?: ClusterNetwork | undefined }, name: string): string | undefined {
  const index = serversOf(state).findIndex((server) => server.name === name)
  if (!isReplicated(state)) return state.network && gatewayOf(state.network)
  return state.network ? serverAddressOf(state.network, index) : simulatedServerAddress(index)
}

/** In the block of the simulated nodes' addresses, behind those of the most nodes that a cluster can have. */
function simulatedServerAddress(index: number): string {
  return `198.19.255.${index + 1}`
}

/**
 * Where a server writes a log that a flag names. Each of several servers has a file of its own, such as audit-server-2.log: it moves the file aside, compresses
 * and removes it, and would lose what the others still write there.
 */
export function ownLogOf(state: Pick<Servers, 'servers'>, name: string, file: string): string {
  if (!isReplicated(state) || file === '' || file === '-') return file
  const { dir, name: base, ext } = path.parse(file)
  return path.join(dir, `${base}-${name}${ext}`)
}

/**
 * A server's identity in Leases. It is the same after a restart, so that a server that was killed takes its leases again at once: a pid file sees to it that the
 * former process has ended.
 */
export function leaseIdentityOf({ id }: { readonly id: string }, name: string, hostName: string): string {
  return `${hostName}_${id}-${name}`
}

/** The Leases of a replicated cluster, in kube-system, by what their holder does. */
export const leasesByWork = { controllers: 'kube-controller-manager', scheduler: 'kube-scheduler', nodes: 'skiff-nodes' } as const
