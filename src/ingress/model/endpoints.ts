/**
 * The endpoints of a port of a Service (L3, pure): ready ones, else those that still serve while they terminate. Upstream: pkg/proxy topology.go and
 * endpointslicecache.go (v1.36), whose rules these are.
 */
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { isLinkLocalMulticast, isLinkLocalUnicast, isLoopback, isUnspecified, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'

export interface Endpoint {
  readonly ip: string
  readonly port: number
}

/** @param port number or name of a port of the Service */
export function endpointsOf(service: Frozen<Service>, slices: readonly Frozen<EndpointSlice>[], port: number | string): Endpoint[] {
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
  const found = [...(ready.size > 0 ? ready : terminating).values()]
  return found.sort((a, b) => (a.ip < b.ip ? -1 : a.ip > b.ip ? 1 : a.port - b.port))
}

/** The API refuses the others for EndpointSlices too; what listens there trusts the node. */
function isConnectable(ip: string): boolean {
  const address = parseIp(ip)
  return address !== undefined && !isLoopback(address) && !isUnspecified(address) && !isLinkLocalUnicast(address) && !isLinkLocalMulticast(address)
}
