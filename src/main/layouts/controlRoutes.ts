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
  const readyFirst = [...nodes.filter(isNodeReady), ...nodes]
  const toServices = [...new Set(serviceCidrs)].flatMap((cidr) => {
    const via = readyFirst.map((node) => addressFor(node, cidr)).find((address) => address !== undefined && isOnLink(address))
    return via ? [{ cidr, via }] : []
  })
  return [...toPods, ...toServices]
}
