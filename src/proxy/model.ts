/**
 * The proxy's model of one node (L3), pure: from Services and EndpointSlices, the addresses and ports of each service, its endpoints and its rules, by address
 * family. Every proxy mode renders the same model. Upstream: pkg/proxy serviceport.go, topology.go, endpointslicecache.go (v1.36).
 */
import type { Service, ServicePort } from '#api/gen/types/core.v1'
import type { EndpointHints, EndpointSlice, Endpoint as SliceEndpoint } from '#api/gen/types/discovery.v1'
import { externalPolicyLocal, hasClusterIp, healthCheckNodePort, internalPolicyLocal, loadBalancerSourceRanges } from '#api/helpers/services'
import { isIpv6, parseCidr, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { type AddressRule, addressRule, type ExternalAddresses, externalAddresses, withoutConflicts } from './externalAddresses.ts'
import { type NodePlace, nearest } from './topology.ts'

export type Protocol = 'tcp' | 'udp' | 'sctp'

export interface ProxyEndpoint {
  readonly ip: string
  readonly port: number
  readonly isLocal: boolean
}

/** One port of one Service, of one IP family. */
export interface ServiceRule {
  /** `namespace/name`; chains and logs are named after it and the port's name. */
  readonly service: string
  readonly portName: string
  readonly protocol: Protocol
  readonly clusterIp: string
  readonly port: number
  readonly nodePort: number | undefined
  /** Where load balancers ask whether this node has endpoints; absent: the Service has no such port. */
  readonly healthCheckNodePort?: number | undefined
  /** spec.externalIPs and the load balancer's addresses. */
  readonly externalIps: readonly string[]
  /** The load balancer's addresses among them. */
  readonly loadBalancerIps: readonly string[]
  /** Ranges that may use the load balancer's addresses; undefined: all addresses may. */
  readonly sourceRanges: readonly string[] | undefined
  /** ClientIP affinity: for how long a client stays with its endpoint. */
  readonly affinitySeconds: number | undefined
  readonly internalPolicyLocal: boolean
  readonly externalPolicyLocal: boolean
  /** For traffic that may leave the node: the nearest endpoints, if hints name them. */
  readonly clusterEndpoints: readonly ProxyEndpoint[]
  /** For traffic that must stay on this node. */
  readonly localEndpoints: readonly ProxyEndpoint[]
}

const serviceNameLabel = 'kubernetes.io/service-name'
const defaultAffinitySeconds = 10_800

export type Family = 'IPv4' | 'IPv6'

/** What a node serves in one address family. */
export interface FamilyModel {
  readonly family: Family
  /** In the order of their names. */
  readonly rules: readonly ServiceRule[]
  /** The ranges that pods get addresses from. */
  readonly clusterCidrs: readonly string[]
  /** The ranges of cluster IPs: nothing else serves their unknown addresses. */
  readonly serviceCidrs: readonly string[]
  /** Node ports answer on the local addresses in these ranges. Absent: on every local address. */
  readonly nodePortCidrs?: readonly string[] | undefined
  /** Traffic to cluster IPs is masqueraded wherever it comes from. */
  readonly masqueradeAll?: boolean | undefined
}

/** One entry for each family that the node serves. */
export type ProxyModel = readonly FamilyModel[]

/** Where a mode gets its models from. */
export interface ProxyModels {
  /** Waits for a change since the last call; the first call waits for the first model. Rejects when the signal aborts. */
  next(signal: AbortSignal): Promise<ProxyModel>
  /** The newest model, without a wait. */
  newest(): ProxyModel
}

export interface ModelSources {
  readonly services: readonly Frozen<Service>[]
  readonly slices: readonly Frozen<EndpointSlice>[]
  readonly place: NodePlace
  readonly clusterCidrs: readonly string[]
  readonly serviceCidrs: readonly string[]
  readonly nodePortCidrs?: readonly string[] | undefined
  readonly masqueradeAll?: boolean | undefined
}

const inFamily = (family: Family) => (address: string) => isIpv6(address) === (family === 'IPv6')

/** The rules of each Service in the model before, and what they were made of. */
export class EarlierRules {
  #before = new Map<string, { readonly inputs: readonly unknown[]; readonly rules: readonly ServiceRule[] }>()
  #now = new Map<string, { readonly inputs: readonly unknown[]; readonly rules: readonly ServiceRule[] }>()

  /** Rules of the same inputs are the same objects as before. */
  take(key: string, inputs: readonly unknown[], make: () => readonly ServiceRule[]): readonly ServiceRule[] {
    const before = this.#before.get(key)
    const isSame = before?.inputs.length === inputs.length && before.inputs.every((input, i) => input === inputs[i])
    const entry = isSame ? before : { inputs, rules: make() }
    this.#now.set(key, entry)
    return entry.rules
  }

  /** Keeps what the model that is complete now took, and nothing older. */
  turn(): void {
    this.#before = this.#now
    this.#now = new Map()
  }
}

/** @param rule which external addresses are served @param earlier rules to take over; absent: all are made */
export function buildModel(
  sources: ModelSources,
  families: readonly Family[],
  rule: AddressRule = addressRule(sources.services, []),
  earlier = new EarlierRules(),
): ProxyModel {
  const model = families.map((family) => ({
    family,
    rules: buildRules(sources, family, rule, earlier),
    clusterCidrs: [...new Set(sources.clusterCidrs)].filter(inFamily(family)),
    serviceCidrs: [...new Set(sources.serviceCidrs)].filter(inFamily(family)),
    ...(sources.nodePortCidrs ? { nodePortCidrs: [...new Set(sources.nodePortCidrs)].filter(inFamily(family)) } : {}),
    ...(sources.masqueradeAll ? { masqueradeAll: true } : {}),
  }))
  earlier.turn()
  return model
}

function buildRules({ services, slices, place }: ModelSources, family: Family, rule: AddressRule, earlier: EarlierRules): ServiceRule[] {
  const byService = new Map<string, Frozen<EndpointSlice>[]>()
  for (const slice of slices) {
    const name = slice.metadata.labels?.[serviceNameLabel]
    if (!name || slice.addressType !== family) continue
    const key = `${slice.metadata.namespace}/${name}`
    const list = byService.get(key)
    if (list) list.push(slice)
    else byService.set(key, [slice])
  }
  const oldestFirst = services
    .filter((service) => hasClusterIp(service) && service.spec.type !== 'ExternalName')
    .map((service) => ({ service, key: `${service.metadata.namespace}/${service.metadata.name}`, created: service.metadata.creationTimestamp ?? '' }))
    .sort((a, b) => (a.created !== b.created ? (a.created < b.created ? -1 : 1) : a.key < b.key ? -1 : 1))
  const rules = oldestFirst.flatMap(({ service, key }) => {
    const ofService = byService.get(key) ?? []
    const external = externalAddresses(service, rule, family === 'IPv6')
    const inputs = [service, place.zone, external.externalIps.join(), external.loadBalancerIps.join(), ...ofService]
    return earlier.take(`${family} ${key}`, inputs, () => rulesOf(service, ofService, place, family, external))
  })
  return withoutConflicts(rules)
    .map((one) => ({ key: ruleKey(one), one }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ one }) => one)
}

/** Unique within a model. */
export function ruleKey(rule: ServiceRule): string {
  return `${rule.service}/${rule.protocol}/${rule.portName}`
}

function rulesOf(
  service: Frozen<Service>,
  slices: readonly Frozen<EndpointSlice>[],
  place: NodePlace,
  family: Family,
  external: ExternalAddresses,
): ServiceRule[] {
  const isOfFamily = inFamily(family)
  const { spec } = service
  const clusterIp = [...(spec.clusterIPs ?? []), ...(spec.clusterIP ? [spec.clusterIP] : [])].find((ip) => ip !== 'None' && isOfFamily(ip))
  if (!clusterIp) return []
  const { externalIps, loadBalancerIps } = external
  const sourceRanges = loadBalancerSourceRanges(service)
  return (spec.ports ?? []).map((port) => {
    const endpoints = endpointsOf(port, slices, place.nodeName)
    return {
      service: `${service.metadata.namespace}/${service.metadata.name}`,
      portName: port.name ?? '',
      protocol: (port.protocol ?? 'TCP').toLowerCase() as Protocol,
      clusterIp,
      port: port.port,
      nodePort: port.nodePort || undefined,
      healthCheckNodePort: healthCheckNodePort(service),
      externalIps: [...new Set([...externalIps, ...loadBalancerIps])],
      loadBalancerIps,
      sourceRanges: sourceRanges.length > 0 ? sourceRanges.filter((range) => isOfFamily(range) && parseCidr(range)) : undefined,
      affinitySeconds: spec.sessionAffinity === 'ClientIP' ? (spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds) : undefined,
      internalPolicyLocal: internalPolicyLocal(service),
      externalPolicyLocal: externalPolicyLocal(service),
      clusterEndpoints: usable(endpoints, (ready) => nearest(ready, place)),
      localEndpoints: usable(endpoints.filter((endpoint) => endpoint.isLocal)),
    }
  })
}

interface Candidate extends ProxyEndpoint {
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
  readonly hints: Frozen<EndpointHints> | undefined
}

/** Ready endpoints; if there are none, endpoints that still serve while they terminate. */
function usable(candidates: readonly Candidate[], choose = (ready: readonly Candidate[]) => ready): ProxyEndpoint[] {
  const ready = candidates.filter((one) => one.ready)
  const chosen = ready.length > 0 ? choose(ready) : candidates.filter((one) => one.serving && one.terminating)
  return chosen.map(({ ip, port, isLocal }) => ({ ip, port, isLocal }))
}

/** All endpoints of a service port, each address and port once. */
function endpointsOf(port: Frozen<ServicePort>, slices: readonly Frozen<EndpointSlice>[], nodeName: string): Candidate[] {
  const found = new Map<string, Candidate>()
  for (const slice of slices) {
    const target = slice.ports?.find((one) => (one.name ?? '') === (port.name ?? '') && (one.protocol ?? 'TCP') === (port.protocol ?? 'TCP'))
    if (!target?.port) continue
    for (const endpoint of slice.endpoints ?? []) {
      const candidate = candidateOf(endpoint, target.port, nodeName)
      if (candidate) found.set(`${candidate.ip}:${candidate.port}`, candidate)
    }
  }
  return [...found.values()].sort((a, b) => (a.ip < b.ip ? -1 : a.ip > b.ip ? 1 : a.port - b.port))
}

function candidateOf(endpoint: Frozen<SliceEndpoint>, port: number, nodeName: string): Candidate | undefined {
  const ip = endpoint.addresses[0]
  // The address becomes a word of a rule: accept nothing but an IP address.
  if (!ip || !parseIp(ip)) return undefined
  const ready = endpoint.conditions?.ready ?? true
  return {
    ip,
    port,
    isLocal: endpoint.nodeName === nodeName,
    ready,
    serving: endpoint.conditions?.serving ?? ready,
    terminating: endpoint.conditions?.terminating ?? false,
    hints: endpoint.hints,
  }
}
