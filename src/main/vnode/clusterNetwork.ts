/**
 * The host side of a local cluster's network (L5): one bridge in the host's namespace, one veth and network namespace per node, and one more namespace from
 * which the API server reaches pods and services. Nothing else of the host changes: no rules, no sysctls, and no route but the bridge's own. Names carry the
 * cluster's id, so that all of it can be found and removed again.
 */
import { hostPort, isIpv6 } from '#api/machinery/ip'
import { check, type Exec } from '#host/exec'

export interface ClusterNetwork {
  /** Interface names have at most 15 characters. */
  readonly bridge: string
  /** e.g. 10.88.7: the first three bytes of the nodes' /24. */
  readonly prefix: string
  /** In a cluster with IPv6: the first four groups of the nodes' /64. */
  readonly prefixIpv6?: string | undefined
  /** The cluster knows its nodes by their addresses of IPv6 alone. On their link they have those of IPv4, too, by which they reach servers outside. */
  readonly isIpv6Only?: boolean | undefined
}

/** A network namespace with a link to the bridge. */
export interface NodeNetwork {
  readonly namespace: string
  readonly address: string
  /** In a cluster with IPv6. */
  readonly addressIpv6?: string | undefined
  readonly isIpv6Only?: boolean | undefined
  readonly hostInterface: string
}

/** The address of the host on the bridge: where nodes and pods reach the API server. */
export function gatewayOf(network: ClusterNetwork): string {
  return addressesOf(addressesAt(network, 1))[0] as string
}

/** The URL of the API server as nodes and pods reach it. */
export function serverUrlOf(network: ClusterNetwork, port: number): string {
  return `https://${hostPort(gatewayOf(network), port)}`
}

/** Addresses of the host on the bridge, of each family that the cluster has. */
export function gatewaysOf(network: ClusterNetwork): string[] {
  return addressesOf(addressesAt(network, 1))
}

/** The address of one of several API servers on the bridge, by its index from 0. Those of nodes begin at 10. */
export function serverAddressOf(network: ClusterNetwork, index: number): string {
  return addressesOf(addressesAt(network, 3 + index))[0] as string
}

/** Names and addresses of the node with this index (0 for the first). */
export function nodeNetwork(network: ClusterNetwork, clusterId: string, index: number): NodeNetwork {
  return { namespace: `skiff-${clusterId}-${index}`, ...addressesAt(network, 10 + index), hostInterface: `sk${clusterId}n${index}` }
}

type LinkAddresses = Pick<NodeNetwork, 'address' | 'addressIpv6' | 'isIpv6Only'>

function addressesAt({ prefix, prefixIpv6, isIpv6Only }: ClusterNetwork, index: number): LinkAddresses {
  const ofIpv6 = prefixIpv6 ? { addressIpv6: `${prefixIpv6}::${index.toString(16)}` } : {}
  return { address: `${prefix}.${index}`, ...ofIpv6, ...(isIpv6Only ? { isIpv6Only } : {}) }
}

/** A node's addresses in the families of the cluster: one or two, the first of IPv4 if there are two. */
export function addressesOf({ address, addressIpv6, isIpv6Only }: LinkAddresses): string[] {
  return [...(isIpv6Only ? [] : [address]), ...(addressIpv6 ? [addressIpv6] : [])]
}

/** The namespace from which the API server reaches pods and services: it alone has routes to them. */
export function controlNetwork(network: ClusterNetwork, clusterId: string): NodeNetwork {
  return { namespace: `skiff-${clusterId}-api`, ...addressesAt(network, 2), hostInterface: `sk${clusterId}api` }
}

/** Makes the bridge; does nothing when it is there. @param alias says what the cluster uses, for other clusters to read */
export async function ensureBridge(exec: Exec, network: ClusterNetwork, alias: string): Promise<void> {
  if (await hasLink(exec, network.bridge)) return
  const { bridge, prefix, prefixIpv6 } = network
  const lines = [
    `link add ${bridge} type bridge`,
    `addr add ${prefix}.1/24 dev ${bridge}`,
    ...(prefixIpv6 ? [`addr add ${prefixIpv6}::1/64 dev ${bridge} nodad`] : []),
    `link set ${bridge} up`,
    '',
  ]
  await check(exec, 'ip', ['-batch', '-'], { input: lines.join('\n') })
  await check(exec, 'ip', ['link', 'set', 'dev', network.bridge, 'alias', alias])
}

/** Gives the bridge one more address; does nothing when it has it. */
export async function ensureBridgeAddress(exec: Exec, { bridge }: ClusterNetwork, address: string): Promise<void> {
  await check(exec, 'ip', ['addr', 'replace', `${address}/${isIpv6(address) ? 64 : 24}`, 'dev', bridge, ...(isIpv6(address) ? ['nodad'] : [])])
}

/** Makes a node's namespace and its link to the bridge; does nothing when they are there. Its default route leads to the host. */
export async function ensureNodeNetwork(exec: Exec, network: ClusterNetwork, node: NodeNetwork): Promise<void> {
  const { prefix, prefixIpv6 } = network
  await ensureNamespace(exec, network, node, [`route add default via ${prefix}.1`, ...(prefixIpv6 ? [`route add default via ${prefixIpv6}::1`] : [])])
}

/** The same for the API server's namespace. Without a default route, an address of no node fails at once and does not leave through the host. */
export async function ensureControlNetwork(exec: Exec, network: ClusterNetwork, control: NodeNetwork): Promise<void> {
  await ensureNamespace(exec, network, control, [])
}

async function ensureNamespace(exec: Exec, network: ClusterNetwork, place: NodeNetwork, routes: readonly string[]): Promise<void> {
  const { namespace, hostInterface, address, addressIpv6 } = place
  if (await hasLink(exec, hostInterface)) return
  // A namespace without its link is left after a crash of the host; it is made again.
  await exec.run('ip', ['netns', 'del', namespace])
  await check(exec, 'ip', ['netns', 'add', namespace])
  const links = [`link add ${hostInterface} type veth peer name eth0 netns ${namespace}`, `link set ${hostInterface} master ${network.bridge} up`, '']
  await check(exec, 'ip', ['-batch', '-'], { input: links.join('\n') })
  const ownAddresses = [`addr add ${address}/24 dev eth0`, ...(addressIpv6 ? [`addr add ${addressIpv6}/64 dev eth0 nodad`] : [])]
  const inside = ['link set lo up', ...ownAddresses, 'link set eth0 up', ...routes, '']
  await check(exec, 'ip', ['-n', namespace, '-batch', '-'], { input: inside.join('\n') })
}

async function hasLink(exec: Exec, name: string): Promise<boolean> {
  return (await exec.run('ip', ['link', 'show', name])).code === 0
}

/** Removes a namespace and its link. Nothing to remove is fine. */
export async function removeNodeNetwork(exec: Exec, node: NodeNetwork): Promise<void> {
  await exec.run('ip', ['link', 'del', node.hostInterface])
  await exec.run('ip', ['netns', 'del', node.namespace])
}

export async function removeBridge(exec: Exec, network: ClusterNetwork): Promise<void> {
  await exec.run('ip', ['link', 'del', network.bridge])
}
