/** Makes a node an endpoint of a Service of the ingress (L3): each node has an EndpointSlice of its own. */
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { isIpv6 } from '#api/machinery/ip'
import type { OwnerReference } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { endpointSlices } from '#client/builtIn'
import type { Client } from '#client/client'
import { ingressPlace } from './place.ts'

export interface Announcer {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
}

export interface Announcement {
  /** Its name, in the namespace of the ingress. */
  readonly service: string
  readonly ports: readonly { readonly name: string; readonly port: number }[]
  /** The slice is deleted together with it. */
  readonly owner?: OwnerReference | undefined
}

const retryMs = 2000

/** Tries until the API takes it. */
export async function announce(
  { client, clock, log }: Announcer,
  { nodeName, nodeAddress }: { readonly nodeName: string; readonly nodeAddress: string },
  { service, ports, owner }: Announcement,
  signal: AbortSignal,
): Promise<void> {
  const { namespace } = ingressPlace
  const slice: EndpointSlice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-${nodeName}`,
      namespace,
      labels: { 'kubernetes.io/service-name': service, 'endpointslice.kubernetes.io/managed-by': 'ingress.skiff' },
      ...(owner ? { ownerReferences: [owner] } : {}),
    },
    addressType: isIpv6(nodeAddress) ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [nodeAddress], nodeName, conditions: { ready: true, serving: true, terminating: false } }],
    ports: ports.map(({ name, port }) => ({ name, protocol: 'TCP', port })),
  }
  while (!signal.aborted) {
    try {
      await client
        .of(endpointSlices)
        .patch({ namespace, name: slice.metadata.name ?? '' }, 'apply', slice, { fieldManager: 'skiff-ingress', force: true, signal })
      return
    } catch (error) {
      if (signal.aborted) return
      log.error(error, 'The node could not be made an endpoint of the ingress', { service })
      await clock.sleep(retryMs, signal).catch(() => {})
    }
  }
}
