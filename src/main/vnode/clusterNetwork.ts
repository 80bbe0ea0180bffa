/**
 * The host side of a local cluster's network (L5): one bridge in the host's namespace and one veth and network namespace per node. Nothing
 * else of the host changes: no rules, no sysctls; routes go with the bridge. Names carry the cluster's id, so that all of it can be found
 * and removed again.
 */
import { check, type Exec } from '#host/exec'

export interface ClusterNetwork {
  /** Interface names have at most 15 characters. */
  readonly bridge: string
  /** e.g. 10.88.7: the first three bytes of the nodes' /24. */
  readonly prefix: string
}

export interface NodeNetwork {
  readonly namespace: string
  readonly address: string
  readonly hostInterface: string
}

/** The address of the host on the bridge: where nodes and pods reach the API server. */
export function gatewayOf(network: ClusterNetwork): string {
  return `${network.prefix}.1`
}

/** Names and address of the node with this index (0 for the first). */
export function nodeNetwork(network: ClusterNetwork, clusterId: string, index: number): NodeNetwork {
  return { namespace: `skiff-${clusterId}-${index}`, address: `${network.prefix}.${10 + index}`, hostInterface: `sk${clusterId}n${index}` }
}

/** Picks a /24 of 10.88.0.0/16 that no route of the host uses, starting from one that the cluster's id suggests. */
export async function chooseNetwork(exec: Exec, clusterId: string): Promise<ClusterNetwork> {
  const routes = JSON.parse(await check(exec, 'ip', ['-j', 'route', 'show', 'table', 'all'])) as { dst?: string }[]
  const used = new Set(
    routes
      .map((route) => route.dst ?? '')
      .filter((dst) => dst.startsWith('10.88.'))
      .map((dst) => dst.split('.')[2]),
  )
  const first = Number.parseInt(clusterId, 16) % 256
  for (let step = 0; step < 256; step++) {
    const third = String((first + step) % 256)
    if (!used.has(third)) return { bridge: `skiff-${clusterId}`, prefix: `10.88.${third}` }
  }
  throw new Error('every network of 10.88.0.0/16 is in use on this host; delete a cluster first')
}

/** Makes the bridge; does nothing when it is there. */
export async function ensureBridge(exec: Exec, network: ClusterNetwork): Promise<void> {
  if ((await exec.run('ip', ['link', 'show', network.bridge])).code === 0) return
  await check(exec, 'ip', ['-batch', '-'], {
    input: [`link add ${network.bridge} type bridge`, `addr add ${gatewayOf(network)}/24 dev ${network.bridge}`, `link set ${network.bridge} up`, ''].join(
      '\n',
    ),
  })
}

/** Makes a node's namespace and its link to the bridge; does nothing when they are there. */
export async function ensureNodeNetwork(exec: Exec, network: ClusterNetwork, node: NodeNetwork): Promise<void> {
  if ((await exec.run('ip', ['link', 'show', node.hostInterface])).code === 0) return
  // A namespace without its link is what a crash of the host leaves; it is made anew.
  await exec.run('ip', ['netns', 'del', node.namespace])
  await check(exec, 'ip', ['netns', 'add', node.namespace])
  await check(exec, 'ip', ['-batch', '-'], {
    input: [
      `link add ${node.hostInterface} type veth peer name eth0 netns ${node.namespace}`,
      `link set ${node.hostInterface} master ${network.bridge} up`,
      '',
    ].join('\n'),
  })
  await check(exec, 'ip', ['-n', node.namespace, '-batch', '-'], {
    input: ['link set lo up', `addr add ${node.address}/24 dev eth0`, 'link set eth0 up', `route add default via ${gatewayOf(network)}`, ''].join('\n'),
  })
}

/** Lets the host reach a node's pods, for the API server's proxies and webhooks. The route goes with the bridge. */
export async function routePods(exec: Exec, network: ClusterNetwork, podCidr: string, nodeAddress: string): Promise<void> {
  await check(exec, 'ip', ['route', 'replace', podCidr, 'via', nodeAddress, 'dev', network.bridge])
}

/** Removes a node's namespace and link. Nothing to remove is fine. */
export async function removeNodeNetwork(exec: Exec, node: NodeNetwork): Promise<void> {
  await exec.run('ip', ['link', 'del', node.hostInterface])
  await exec.run('ip', ['netns', 'del', node.namespace])
}

export async function removeBridge(exec: Exec, network: ClusterNetwork): Promise<void> {
  await exec.run('ip', ['link', 'del', network.bridge])
}
