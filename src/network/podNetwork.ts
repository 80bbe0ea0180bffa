/** The pod network as data (L3), pure: the CNI configuration of a node and the routes to the pods of other nodes. Specification: CNI 0.4.0/1.0.0. */
import type { Node } from '#api/gen/types/core.v1'
import { isIpv6 } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'

/** A range of pods or services and the node that forwards to it, both of one address family. */
export interface Route {
  readonly cidr: string
  readonly via: string
}

export interface CniChoice {
  /** The largest packet of a pod; absent: as its link has it. */
  readonly mtu?: number | undefined
  /** Skiff's own plugin, for a node without the reference plugins. It does the same. */
  readonly isOwn?: boolean | undefined
  /** The node limits the bandwidth of pods whose annotations ask for it; otherwise the runtime does not pass it on, and the pods start without limits. */
  readonly limitsBandwidth?: boolean | undefined
}

/** The type of Skiff's own plugin. */
export const ownPlugin = 'skiff'

/**
 * The reference plugins: for each pod a link to the node, with addresses from the node's pod CIDRs, host ports, and limits of its bandwidth. There is no bridge, so that the node routes
 * every packet of a pod: its rules see packets between its own pods, too, and no pod answers for the address of another. The plugins masquerade nothing: see
 * masquerade.ts.
 */
export function cniConfig(podCidrs: readonly string[], { mtu, isOwn = false, limitsBandwidth = false }: CniChoice = {}): Record<string, unknown> {
  const size = mtu ? { mtu } : {}
  const portMappings = { portMappings: true }
  const bandwidth = limitsBandwidth ? { bandwidth: true } : {}
  if (isOwn) {
    const plugin = { type: ownPlugin, ...size, ranges: podCidrs, capabilities: { ...portMappings, ...bandwidth } }
    return { cniVersion: '0.4.0', name: 'skiff', plugins: [plugin] }
  }
  const ranges = podCidrs.map((subnet) => [{ subnet }])
  const routes = podCidrs.map((cidr) => ({ dst: isIpv6(cidr) ? '::/0' : '0.0.0.0/0' }))
  return {
    cniVersion: '0.4.0',
    name: 'skiff',
    plugins: [
      { type: 'ptp', ipMasq: false, ...size, ipam: { type: 'host-local', ranges, routes } },
      ...(limitsBandwidth ? [{ type: 'bandwidth', capabilities: bandwidth }] : []),
      { type: 'portmap', capabilities: portMappings },
    ],
  }
}

/** The ranges of a node's pods, one of each family that it has. */
export function podCidrsOf({ spec }: Frozen<Node>): readonly string[] {
  return spec.podCIDRs ?? (spec.podCIDR ? [spec.podCIDR] : [])
}

/** A node's internal address in the family of `cidr`. */
export function addressFor({ status }: Frozen<Node>, cidr: string): string | undefined {
  return status?.addresses?.find(({ type, address }) => type === 'InternalIP' && isIpv6(address) === isIpv6(cidr))?.address
}

/** One route for each range of another node that has an address of the same family. @param self the node that needs the routes, if it is one */
export function podRoutes(nodes: readonly Frozen<Node>[], self: string | undefined): Route[] {
  return nodes
    .filter((node) => node.metadata.name !== self && !isSimulated(node))
    .flatMap((node) =>
      podCidrsOf(node).flatMap((cidr) => {
        const via = addressFor(node, cidr)
        return via ? [{ cidr, via }] : []
      }),
    )
}

/** Simulated nodes have addresses that do not answer. */
export function isSimulated(node: Frozen<Node>): boolean {
  return node.status?.nodeInfo?.containerRuntimeVersion?.startsWith('simulated://') ?? false
}
