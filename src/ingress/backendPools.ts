/**
 * The backends that requests ask for (L3): their endpoints are worked out when a request first needs them, and again when the Service or its EndpointSlices
 * change. Services that no request asks for cost nothing.
 */
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import { endpointSlices, services } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { type Endpoint, endpointsOf } from './model/endpoints.ts'
import type { BackendRef } from './model/route.ts'
import { Backend } from './proxy/backend.ts'

/** Services whose endpoints are kept; the others are worked out again. */
const maxServices = 4096
/** The Service of the API servers. */
const apiServers = 'default/kubernetes'
const serviceNameLabel = 'kubernetes.io/service-name'

export interface BackendPools {
  backendOf(ref: BackendRef): Backend
  /** Works the endpoints of a Service out again, if a request has asked for them before. */
  refresh(service: string): void
}

/** `namespace/name` of the Service that an EndpointSlice belongs to. */
export function serviceKeyOf({ metadata }: Frozen<EndpointSlice>): string {
  return `${metadata.namespace}/${metadata.labels?.[serviceNameLabel] ?? ''}`
}

const indexers = { service: (slice: Frozen<EndpointSlice>) => [serviceKeyOf(slice)] }

export function createBackendPools(informers: SharedInformerFactory, clock: Clock): BackendPools {
  const serviceStore = informers.of(services).store
  const slices = informers.of(endpointSlices)
  slices.addIndexers(indexers)
  const pools = new LruCache<string, Map<number | string, Backend>>(maxServices)
  const find = (key: string, port: number | string): Endpoint[] => {
    const service = serviceStore.get(key)
    const ofService = (name: string) => slices.store.byIndex('service', name)
    return service ? endpointsOf(service, ofService(key), port, ofService(apiServers)) : []
  }
  return {
    backendOf: ({ service, port }) => {
      let ports = pools.get(service)
      if (!ports) {
        ports = new Map()
        pools.set(service, ports)
      }
      const there = ports.get(port)
      if (there) return there
      const made = new Backend(clock)
      made.setEndpoints(find(service, port))
      ports.set(port, made)
      return made
    },
    refresh: (service) => {
      for (const [port, backend] of pools.get(service) ?? []) backend.setEndpoints(find(service, port))
    },
  }
}
