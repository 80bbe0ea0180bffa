/** The endpoints of a Service as its slices have them (L4), pure. */
import type { ServicePort } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen } from '#api/machinery/meta'

export interface ShownEndpoint {
  readonly address: string
  readonly port: number
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
  readonly node?: string | undefined
  readonly zone?: string | undefined
  /** The zones and nodes that it is for. */
  readonly hints: readonly string[]
  readonly targetPod?: string | undefined
}

/** @param of a port of the Service; absent: all ports */
export function endpointsOf(slices: readonly Frozen<EndpointSlice>[], of?: Frozen<ServicePort>): ShownEndpoint[] {
  const found = new Map<string, ShownEndpoint>()
  for (const { endpoints, ports } of slices) {
    // Both may be null.
    const wanted = (ports ?? []).filter(
      (port) => of === undefined || ((port.name ?? '') === (of.name ?? '') && (port.protocol ?? 'TCP') === (of.protocol ?? 'TCP')),
    )
    for (const { addresses, conditions, nodeName, zone, hints, targetRef } of endpoints ?? [])
      for (const { port } of wanted) {
        const [address] = addresses
        if (address === undefined || port === undefined) continue
        const ready = conditions?.ready ?? true
        found.set(`${address} ${port}`, {
          address,
          port,
          ready,
          serving: conditions?.serving ?? ready,
          terminating: conditions?.terminating ?? false,
          node: nodeName,
          zone,
          hints: [...(hints?.forZones ?? []), ...(hints?.forNodes ?? [])].map(({ name }) => name),
          ...(targetRef?.kind === 'Pod' ? { targetPod: targetRef.name } : {}),
        })
      }
  }
  return [...found.values()]
}
