/**
 * The endpoints of a port of a Service (L3, pure): ready ones, else those that still serve while they terminate. Upstream: pkg/proxy topology.go and
 * endpointslicecache.go (v1.36), whose rules these are.
 */
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { isLinkLocalMulticast, isLinkLocalUnicast, isLoopback, isMapped, isUnspecified, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'

export interface Endpoint {
  readonly ip: string
  readonly port: number
}

/**
 * @param port number or name of a port of the Service
 * @param ofApiServers the EndpointSlices of the API servers: they are for clients with credentials of their own, and no backend
 */
export function endpointsOf(
  service: Frozen<Service>,
  slices: readonly Frozen<EndpointSlice>[],
  port: number | string,
  ofApiServers: readonly Frozen<EndpointSlice>[] = [],
): Endpoint[] {
  // Its name could lead anywhere, also to what only the nodes reach.
  if (service.spec?.type === 'ExternalName') return []
  const wanted = service.spec?.ports?.find((one) => (typeof port === 'number' ? one.port === port : one.name === port))
  if (!wanted || (wanted.protocol ?? 'TCP') !== 'TCP') return []
  const ready = new Map<string, Endpoint>()
  const terminating = new Map<string, Endpoint>()
  for (const slice of slices) {
    const target = slice.ports?.find((one) => (one.name ?? '') === (wanted.name ?? '') && (one.protocol ?? 'TCP') === 'TCP')?.port
    if (!target) continue
    for (const { addresses, conditions } of slice.endpoints ?? []) {
      const ip = addresses[0]
      if (ip === undefined || !isConnectable(ip)) continue
      const isReady = conditions?.ready ?? true
      const list = isReady ? ready : (conditions?.serving ?? isReady) && conditions?.terminating ? terminating : undefined
      list?.set(`${ip} ${target}`, { ip, port: target })
    }
  }
  for (const key of ofApiServers.flatMap(placesOf)) for (const list of [ready, terminating]) list.delete(key)
  const found = [...(ready.size > 0 ? ready : terminating).values()]
  return found.sort((a, b) => (a.ip < b.ip ? -1 : a.ip > b.ip ? 1 : a.port - b.port))
}

function placesOf({ endpoints, ports }: Frozen<EndpointSlice>): string[] {
  return (endpoints ?? []).flatMap(({ addresses }) => addresses.flatMap((ip) => (ports ?? []).map(({ port }) => `${ip} ${port}`)))
}

/** The API refuses the others for new EndpointSlices, too; a node's report can still bring a mapped one. What listens on loopback trusts the node. */
function isConnectable(ip: string): boolean {
  const address = parseIp(ip)
  const refusing = [isMapped, isLoopback, isUnspecified, isLinkLocalUnicast, isLinkLocalMulticast]
  return address !== undefined && !refusing.some((refuses) => refuses(address))
}
