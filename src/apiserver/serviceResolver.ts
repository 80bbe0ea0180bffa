/**
 * Where the API server finds a service that it calls itself (L3): a ready endpoint, since cluster IPs need not lead anywhere from here.
 * Upstream: kube-aggregator's endpoint service resolver (apiserver/pkg/util/proxy.ResolveEndpoint).
 */
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import type { Random } from '#base/random'
import type { ObjectReader } from './admission/admission.ts'

export interface ServiceAddress {
  readonly host: string
  readonly port: number
}

/** @throws NotFound without such a service or port, ServiceUnavailable while no endpoint is ready */
export type ServiceResolver = (namespace: string, name: string, port: number) => ServiceAddress

const services = { group: '', resource: 'services' }
const endpointSlices = { group: 'discovery.k8s.io', resource: 'endpointslices' }

export function serviceResolver(reader: ObjectReader, random: Random): ServiceResolver {
  return (namespace, name, port) => {
    const service = reader.get<KubeObject>(services, namespace, name) as Frozen<Service> | undefined
    if (!service) throw notFound(services, name)
    const { spec } = service
    if (spec?.type === 'ExternalName') return { host: spec.externalName ?? '', port }
    const servicePort = spec?.ports?.find((one) => one.port === port)
    if (!servicePort) throw new StatusError('ServiceUnavailable', `no service port ${port} found for service ${JSON.stringify(name)}`)
    const found: ServiceAddress[] = []
    for (const slice of reader.list<KubeObject>(endpointSlices, namespace) as unknown as readonly Frozen<EndpointSlice>[]) {
      if (slice.metadata.labels?.['kubernetes.io/service-name'] !== name) continue
      const target = slice.ports?.find((one) => (one.name ?? '') === (servicePort.name ?? ''))?.port
      for (const { addresses, conditions } of slice.endpoints ?? []) {
        if (target !== undefined && addresses[0] && conditions?.ready !== false) found.push({ host: addresses[0], port: target })
      }
    }
    const chosen = found[random.int(found.length || 1)]
    if (!chosen) throw new StatusError('ServiceUnavailable', `no endpoints available for service ${JSON.stringify(name)}`)
    return chosen
  }
}
