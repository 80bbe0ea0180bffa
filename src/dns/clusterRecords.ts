/**
 * Derives DNS records from Services and EndpointSlices (L3), pure over two look-ups. Specification: Kubernetes DNS-based service discovery 1.1.0;
 * details as CoreDNS' kubernetes plugin has them (pods insecure).
 */
import type { Service } from '#api/gen/types/core.v1'
import type { Endpoint, EndpointSlice } from '#api/gen/types/discovery.v1'
import { isHeadless } from '#api/helpers/services'
import { formatIp, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import type { DnsRecord } from './message.ts'

/** The objects that records are derived from; answered from an informer's indexes. */
export interface ClusterView {
  service(namespace: string, name: string): Frozen<Service> | undefined
  slices(namespace: string, service: string): readonly Frozen<EndpointSlice>[]
  namespaceExists(name: string): boolean
  /** Services that have the address as a cluster IP, and endpoints that have it, for reverse look-ups. */
  servicesByIp(ip: string): readonly Frozen<Service>[]
  slicesByIp(ip: string): readonly Frozen<EndpointSlice>[]
}

export const recordTtl = 30

/** `exists` with no records means: the name is there, but not with this type. */
export interface Lookup {
  readonly exists: boolean
  readonly records: readonly DnsRecord[]
  readonly additional?: readonly DnsRecord[]
}

const nothing: Lookup = { exists: false, records: [] }
const empty: Lookup = { exists: true, records: [] }

/** Looks up a name below the zone; `name` is lower case and without the final dot. */
export function lookUp(view: ClusterView, zone: string, name: string, type: string): Lookup {
  if (name === zone) return empty
  const labels = name.slice(0, -zone.length - 1).split('.')
  const kind = labels.at(-1)
  if (name === `dns-version.${zone}`) return type === 'TXT' ? { exists: true, records: [{ name, ttl: recordTtl, type: 'TXT', text: '1.1.0' }] } : empty
  if (kind === 'svc') return lookUpService(view, zone, name, labels.slice(0, -1), type)
  if (kind === 'pod') return lookUpPod(view, name, labels.slice(0, -1), type)
  return nothing
}

function lookUpService(view: ClusterView, zone: string, name: string, labels: readonly string[], type: string): Lookup {
  const namespace = labels.at(-1)
  if (namespace === undefined) return empty
  const serviceName = labels.at(-2)
  if (serviceName === undefined) return view.namespaceExists(namespace) ? empty : nothing
  const service = view.service(namespace, serviceName)
  if (!service) return nothing
  const rest = labels.slice(0, -2)
  if (service.spec.type === 'ExternalName') {
    return rest.length > 0 ? nothing : { exists: true, records: [{ name, ttl: recordTtl, type: 'CNAME', target: service.spec.externalName ?? '' }] }
  }
  const base = `${serviceName}.${namespace}.svc.${zone}`
  if (isHeadless(service)) return lookUpHeadless(view.slices(namespace, serviceName), base, name, rest, type)
  return lookUpClusterIp(service, base, name, rest, type)
}

function lookUpClusterIp(service: Frozen<Service>, base: string, name: string, rest: readonly string[], type: string): Lookup {
  const addresses = addressRecords(name, service.spec.clusterIPs ?? [service.spec.clusterIP ?? ''], type)
  if (rest.length === 0 && type !== 'SRV') return { exists: true, records: addresses }
  const port = rest.length === 0 ? undefined : wantedPort(rest)
  if (rest.length > 0 && !port) return nothing
  const ports = (service.spec.ports ?? []).filter((one) => !port || matches(port, one.name ?? '', one.protocol ?? 'TCP'))
  if (ports.length === 0) return nothing
  if (type !== 'SRV') return { exists: true, records: addresses }
  return {
    exists: true,
    records: ports.map((one) => ({ name, ttl: recordTtl, type: 'SRV', priority: 0, weight: Math.floor(100 / ports.length), port: one.port, target: base })),
    additional: [...addressRecords(base, service.spec.clusterIPs ?? [], 'A'), ...addressRecords(base, service.spec.clusterIPs ?? [], 'AAAA')],
  }
}

function lookUpHeadless(slices: readonly Frozen<EndpointSlice>[], base: string, name: string, rest: readonly string[], type: string): Lookup {
  const endpoints = slices.flatMap((slice) =>
    (slice.endpoints ?? []).filter((endpoint) => endpoint.conditions?.ready !== false).map((endpoint) => ({ slice, endpoint })),
  )
  if (endpoints.length === 0) return nothing
  const [first] = rest
  const port = rest.length === 2 ? wantedPort(rest) : undefined
  if (rest.length > 2 || (rest.length === 2 && !port)) return nothing
  const named = rest.length === 1 ? endpoints.filter(({ endpoint }) => endpointName(endpoint) === first) : endpoints
  if (named.length === 0) return nothing
  if (type !== 'SRV') {
    if (port) return empty
    return {
      exists: true,
      records: dedupe(
        addressRecords(
          name,
          named.flatMap(({ endpoint }) => [...endpoint.addresses]),
          type,
        ),
      ),
    }
  }
  const records: DnsRecord[] = []
  const additional: DnsRecord[] = []
  for (const { slice, endpoint } of named) {
    const target = `${endpointName(endpoint)}.${base}`
    const ports = (slice.ports ?? []).filter((one) => !port || matches(port, one.name ?? '', one.protocol ?? 'TCP'))
    if (ports.length > 0) for (const family of ['A', 'AAAA']) additional.push(...addressRecords(target, endpoint.addresses, family))
    for (const one of ports)
      records.push({ name, ttl: recordTtl, type: 'SRV', priority: 0, weight: Math.max(1, Math.floor(100 / named.length)), port: one.port ?? 0, target })
  }
  return records.length === 0 ? nothing : { exists: true, records, additional }
}

/** `10-244-0-7.namespace.pod.zone`, or an IPv6 address with dashes for its colons: any address of an existing namespace, whether a pod has it or not (pods insecure). */
function lookUpPod(view: ClusterView, name: string, labels: readonly string[], type: string): Lookup {
  const [address, namespace] = labels.length === 1 ? [undefined, labels[0]] : labels.length === 2 ? labels : [undefined, undefined]
  if (labels.length === 0) return empty
  if (namespace === undefined || !view.namespaceExists(namespace)) return nothing
  if (address === undefined) return empty
  const isIpv4 = /^\d+-\d+-\d+-\d+$/.test(address)
  const ip = parseIp(address.replaceAll('-', isIpv4 ? '.' : ':'))
  return ip ? { exists: true, records: addressRecords(name, [formatIp(ip)], type) } : nothing
}

/** The names of an address, from in-addr.arpa or ip6.arpa. */
export function reverseLookUp(view: ClusterView, zone: string, name: string): readonly DnsRecord[] {
  const ip = addressOfReverseName(name)
  if (!ip) return []
  const record = (target: string): DnsRecord => ({ name, ttl: recordTtl, type: 'PTR', target })
  const services = view.servicesByIp(ip).map((service) => record(`${service.metadata.name}.${service.metadata.namespace}.svc.${zone}`))
  if (services.length > 0) return services
  return view.slicesByIp(ip).flatMap((slice) => {
    const service = slice.metadata.labels?.['kubernetes.io/service-name']
    const endpoint = slice.endpoints?.find((one) => one.addresses.includes(ip))
    return service && endpoint ? [record(`${endpointName(endpoint)}.${service}.${slice.metadata.namespace}.svc.${zone}`)] : []
  })
}

export function addressOfReverseName(name: string): string | undefined {
  const ipv4 = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\.in-addr\.arpa$/.exec(name)
  if (ipv4) return `${ipv4[4]}.${ipv4[3]}.${ipv4[2]}.${ipv4[1]}`
  if (!/^([0-9a-f]\.){32}ip6\.arpa$/.test(name)) return undefined
  const digits = name.split('.').slice(0, 32).reverse().join('')
  return formatIp({ family: 6, value: BigInt(`0x${digits}`) })
}

/** The hostname that the endpoint gives itself, else its address with dashes. */
function endpointName(endpoint: Frozen<Endpoint>): string {
  return endpoint.hostname || (endpoint.addresses[0] ?? '').replace(/[.:]/g, '-')
}

function wantedPort(labels: readonly string[]): { name: string; protocol: string } | undefined {
  const [name = '', protocol = ''] = labels
  return labels.length === 2 && name.startsWith('_') && protocol.startsWith('_') ? { name: name.slice(1), protocol: protocol.slice(1) } : undefined
}

function matches(wanted: { name: string; protocol: string }, name: string, protocol: string): boolean {
  return (wanted.name === '*' || wanted.name === name) && (wanted.protocol === '*' || wanted.protocol === protocol.toLowerCase())
}

function addressRecords(name: string, addresses: readonly string[], type: string): DnsRecord[] {
  if (type !== 'A' && type !== 'AAAA') return []
  return addresses.filter((ip) => ip !== '' && ip.includes(':') === (type === 'AAAA')).map((address) => ({ name, ttl: recordTtl, type, address }))
}

function dedupe(records: readonly DnsRecord[]): DnsRecord[] {
  return [...new Map(records.map((record) => ['address' in record ? record.address : '', record])).values()]
}
