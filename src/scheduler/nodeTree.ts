/** The order in which nodes are looked at (L3): zones take turns, so that the first nodes that fit are not all of one. Upstream: backend/cache/node_tree.go. */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { NodeInfo } from './framework/nodeInfo.ts'

/** The nodes in the order in which they are looked at. */
export function interleaveZones(nodes: Iterable<NodeInfo>): NodeInfo[] {
  const zones = new Map<string, NodeInfo[]>()
  let total = 0
  for (const info of nodes) {
    total++
    const zone = zoneOf(info.node)
    const there = zones.get(zone)
    if (there) there.push(info)
    else zones.set(zone, [info])
  }
  const lists = [...zones.values()]
  if (lists.length === 1) return lists[0] as NodeInfo[]
  const ordered: NodeInfo[] = []
  for (let i = 0; ordered.length < total; i++) {
    for (const list of lists) {
      const info = list[i]
      if (info) ordered.push(info)
    }
  }
  return ordered
}

/** Region and zone; deprecated labels take precedence where a node has them. Upstream: component-helpers/node/topology GetZoneKey. */
export function zoneOf({ metadata: { labels = {} } }: Frozen<Node>): string {
  const region = labels['failure-domain.beta.kubernetes.io/region'] ?? labels['topology.kubernetes.io/region'] ?? ''
  const zone = labels['failure-domain.beta.kubernetes.io/zone'] ?? labels['topology.kubernetes.io/zone'] ?? ''
  return `${region}\0${zone}`
}
