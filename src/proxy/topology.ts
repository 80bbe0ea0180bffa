/**
 * Picks a service's endpoints near a node (L3), pure: the hints of EndpointSlices name the nodes and zones that an endpoint serves. Hints count only if
 * every ready endpoint has them and one names this node, or else its zone; otherwise all ready endpoints are used. Upstream: pkg/proxy/topology.go (v1.36).
 */
import type { EndpointHints } from '#api/gen/types/discovery.v1'
import type { Frozen } from '#api/machinery/meta'

/** Where the proxy runs. */
export interface NodePlace {
  readonly nodeName: string
  /** Absent: the node has no zone label. */
  readonly zone?: string | undefined
}

interface Hinted {
  readonly hints: Frozen<EndpointHints> | undefined
}

const isForNode = ({ hints }: Hinted, name: string | undefined) => hints?.forNodes?.some((node) => node.name === name) ?? false
const isForZone = ({ hints }: Hinted, name: string | undefined) => hints?.forZones?.some((zone) => zone.name === name) ?? false

/** @param ready the endpoints that are ready */
export function nearest<T extends Hinted>(ready: readonly T[], { nodeName, zone }: NodePlace): readonly T[] {
  if (ready.every(({ hints }) => hints?.forNodes?.length)) {
    const onNode = ready.filter((endpoint) => isForNode(endpoint, nodeName))
    if (onNode.length > 0) return onNode
  }
  if (zone !== undefined && ready.every(({ hints }) => hints?.forZones?.length)) {
    const inZone = ready.filter((endpoint) => isForZone(endpoint, zone))
    if (inZone.length > 0) return inZone
  }
  return ready
}
