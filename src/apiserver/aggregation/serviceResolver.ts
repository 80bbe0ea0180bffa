/**
 * Resolves the Service of an APIService to an address (L3): one of its ready endpoints, since the API server may be outside the network of cluster IPs
 * (upstream's --enable-aggregator-routing), or the external name.
 * Upstream: kube-aggregator/pkg/apiserver/resolvers.go, apiserver/pkg/util/proxy (ResolveEndpoint, ResolveCluster).
 */
import type { APIService } from '#api/gen/types/apiregistration.v1'
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import type { Random } from '#base/random'
import type { ObjectReader } from '../core/objectReader.ts'

export type ServiceReference = NonNullable<Frozen<APIService>['spec']['service']>

export interface Place {
  readonly host: string
  readonly port: number
}

export const services = { group: '', resource: 'services' }
export const endpointSlices = { group: 'discovery.k8s.io', resource: 'endpointslices' }
export const serviceNameLabel = 'kubernetes.io/service-name'
const defaultPort = 443

export function portOf(reference: ServiceReference): number {
  return reference.port ?? defaultPort
}

/** @throws NotFound or ServiceUnavailable with upstream's texts */
export function resolveService(reader: ObjectReader, random: Random, reference: ServiceReference): Place {
  const { namespace = '', name = '' } = reference
  const wanted = portOf(reference)
  const service = reader.get<KubeObject>(services, namespace, name) as Frozen<Service> | undefined
  // The singular is upstream's: its lister uses it, and people search for the text.
  if (!service) throw notFound({ group: '', resource: 'service' }, name)
  const { type = 'ClusterIP', externalName, ports = [] } = service.spec ?? {}
  if (type === 'ExternalName') return { host: externalName ?? '', port: wanted }
  const port = ports.find((one) => one.port === wanted)
  if (!port) throw new StatusError('ServiceUnavailable', `no service port ${wanted} found for service ${JSON.stringify(name)}`)
  const places = slicesOf(reader, namespace, name).flatMap((slice) => readyPlaces(slice, port.name ?? ''))
  const chosen = places[random.int(places.length || 1)]
  if (!chosen) throw new StatusError('ServiceUnavailable', `no endpoints available for service ${JSON.stringify(name)}`)
  return chosen
}

export function slicesOf(reader: ObjectReader, namespace: string, service: string): readonly Frozen<EndpointSlice>[] {
  const slices = reader.list<KubeObject>(endpointSlices, namespace) as unknown as readonly Frozen<EndpointSlice>[]
  return slices.filter(({ metadata }) => metadata.labels?.[serviceNameLabel] === service)
}

export function readyPlaces(slice: Frozen<EndpointSlice>, portName: string): Place[] {
  const port = slice.ports?.find((one) => (one.name ?? '') === portName)?.port
  if (port === undefined) return []
  return (slice.endpoints ?? []).flatMap(({ addresses, conditions }) => (conditions?.ready === false || !addresses[0] ? [] : [{ host: addresses[0], port }]))
}
