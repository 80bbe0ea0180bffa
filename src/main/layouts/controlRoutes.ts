/**
 * The routes of the namespace from which the API server of a local cluster reaches pods and services (L5), pure: to the pods of each real node through that node,
 * and to the cluster IPs through a Ready one, whose service proxy takes the traffic of others too.
 */
import type { Node } from '#api/gen/types/core.v1'
import { isNodeReady } from '#api/helpers/nodes'
import type { Frozen } from '#api/machinery/meta'
import { addressFor, podRoutes, type Route } from '#network/podNetwork'

/** @param isOnLink whether an address is one of a node on the cluster's bridge */
export function controlRoutes(nodes: readonly Frozen<Node>[], serviceCidrs: readonly string[], isOnLink: (address: string) => boolean): Route[] {
  const toPods = podRoutes(nodes, undefined).filter(({ via }) => isOnLink(via))
  const forwarder = [...nodes.filter(isNodeReady), ...nodes].map((node) => addressFor(node, '0.0.0.0/0')).find((via) => via !== undefined && isOnLink(via))
  const ofNodesFamily = [...new Set(serviceCidrs)].filter((cidr) => !cidr.includes(':'))
  return [...toPods, ...(forwarder ? ofNodesFamily.map((cidr) => ({ cidr, via: forwarder })) : [])]
}
