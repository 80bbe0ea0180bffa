/** The pod network as data (L3), pure: the CNI configuration of a node and the routes between nodes. Specification: CNI 0.4.0/1.0.0. */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export interface Route {
  readonly cidr: string
  readonly via: string
}

/** The reference plugins: a bridge with addresses from the node's pod CIDR, and host ports. Addresses are kept: nothing is masqueraded. */
export function cniConfig(podCidr: string): Record<string, unknown> {
  return {
    cniVersion: '0.4.0',
    name: 'skiff',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        hairpinMode: true,
        ipMasq: false,
        ipam: { type: 'host-local', ranges: [[{ subnet: podCidr }]], routes: [{ dst: '0.0.0.0/0' }] },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  }
}

/** One route per other node that has both a pod CIDR and an address. */
export function wantedRoutes(nodes: readonly Frozen<Node>[], self: string, addressOf: (node: Frozen<Node>, type: string) => string | undefined): Route[] {
  return nodes
    .filter((node) => node.metadata.name !== self)
    .flatMap((node) => {
      const via = addressOf(node, 'InternalIP')
      return node.spec.podCIDR && via && !isSimulated(node) ? [{ cidr: node.spec.podCIDR, via }] : []
    })
}

/** Simulated nodes have addresses that do not answer. */
function isSimulated(node: Frozen<Node>): boolean {
  return node.status.nodeInfo?.containerRuntimeVersion?.startsWith('simulated://') ?? false
}

/** Marks our routes in the kernel's table, so that a later run finds them and never touches others. Any free number will do. */
export const routeProtocol = 107

/** Reads what `ip -json route show` prints. */
export function parseRoutes(json: string): Route[] {
  const shown = JSON.parse(json || '[]') as { dst: string; gateway?: string }[]
  return shown.map(({ dst, gateway = '' }) => ({ cidr: dst, via: gateway }))
}

/** Commands for `ip -batch` that lead from one set of routes to the other. */
export function routeChanges(before: readonly Route[], wanted: readonly Route[]): string[] {
  const now = new Map(wanted.map((route) => [route.cidr, route.via]))
  const then = new Map(before.map((route) => [route.cidr, route.via]))
  return [
    ...before.filter((route) => !now.has(route.cidr)).map((route) => `route del ${route.cidr} proto ${routeProtocol}`),
    ...wanted.filter((route) => then.get(route.cidr) !== route.via).map((route) => `route replace ${route.cidr} via ${route.via} proto ${routeProtocol}`),
  ]
}
