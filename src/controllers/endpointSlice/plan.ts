/**
 * Plans the changes of a Service's EndpointSlices from its endpoints (L3). Pure: full slices stay, changed ones are updated in
 * place, the rest fills what has room. Upstream: k8s.io/endpointslice reconciler.go, utils.go (v1.36).
 */
import type { Node, Pod, Service } from '#api/gen/types/core.v1'
import type { Endpoint, EndpointHints, EndpointPort, EndpointSlice } from '#api/gen/types/discovery.v1'
import { isPodReady, isPodTerminal } from '#api/helpers/pods'
import { findTargetPort, isHeadless } from '#api/helpers/services'
import { semanticEqual } from '#api/machinery/equality'
import { ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { emptyMap, ownValue } from '#base/bareMap'
import { append } from '#base/extremes'
import { deepCopy } from '#base/frozen'
import type { NewObject } from '#client/client'
import { byContainerPorts } from '../shared/byContainerPorts.ts'

export const serviceNameLabel = 'kubernetes.io/service-name'
export const managedByLabel = 'endpointslice.kubernetes.io/managed-by'
export const managedBy = 'endpointslice-controller.k8s.io'
export const headlessLabel = 'service.kubernetes.io/headless'
const topologyModeAnnotation = 'service.kubernetes.io/topology-mode'
const deprecatedTopologyAnnotation = 'service.kubernetes.io/topology-aware-hints'
const notCopiedLabels = new Set([serviceNameLabel, managedByLabel, headlessLabel])

export type AddressType = 'IPv4' | 'IPv6'

export function addressTypes(service: Frozen<Service>): AddressType[] {
  const families = service.spec.ipFamilies ?? []
  if (families.length > 0) return [...new Set(families)] as AddressType[]
  return [ipFamily(service.spec.clusterIP ?? '') === 6 ? 'IPv6' : 'IPv4']
}

/** A group of endpoints with the same ports, for one or several slices. */
export interface WantedEndpoints {
  readonly ports: EndpointPort[]
  readonly endpoints: Endpoint[]
}

/** The endpoints of one address family, grouped by ports (named target ports may differ from pod to pod). */
export function wantedEndpoints(
  service: Frozen<Service>,
  pods: readonly Frozen<Pod>[],
  nodeOf: (name: string) => Frozen<Node> | undefined,
  type: AddressType,
): WantedEndpoints[] {
  const groups = new Map<string, WantedEndpoints>()
  const portsOfPod = byContainerPorts((pod) => {
    const ports = endpointPorts(service, pod)
    return { ports, key: JSON.stringify([...ports].sort((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1))) }
  })
  for (const pod of pods) {
    if (!shouldBeEndpoint(pod)) continue
    const address = addressOf(pod, type)
    if (address === undefined) continue
    const { ports, key } = portsOfPod(pod)
    const group = groups.get(key) ?? { ports, endpoints: [] }
    groups.set(key, group)
    group.endpoints.push(endpointOf(service, pod, address, nodeOf(pod.spec.nodeName ?? '')))
  }
  return [...groups.values()]
}

/** Ended pods are none; terminating ones are, so that connections can drain. */
function shouldBeEndpoint(pod: Frozen<Pod>): boolean {
  return !isPodTerminal(pod) && Boolean(pod.status?.podIP)
}

export function addressOf(pod: Frozen<Pod>, type: AddressType): string | undefined {
  const family = type === 'IPv6' ? 6 : 4
  const addresses = pod.status?.podIPs?.map(({ ip }) => ip) ?? [pod.status?.podIP ?? '']
  return addresses.find((ip) => ipFamily(ip) === family)
}

function endpointPorts(service: Frozen<Service>, pod: Frozen<Pod>): EndpointPort[] {
  const ports: EndpointPort[] = []
  for (const port of service.spec.ports ?? []) {
    const number = findTargetPort(pod, port)
    if (number === undefined) continue
    ports.push({
      name: port.name ?? '',
      port: number,
      protocol: port.protocol ?? 'TCP',
      ...(port.appProtocol ? { appProtocol: port.appProtocol } : {}),
    })
  }
  return ports
}

function endpointOf(service: Frozen<Service>, pod: Frozen<Pod>, address: string, node: Frozen<Node> | undefined): Endpoint {
  const serving = isPodReady(pod)
  const terminating = pod.metadata.deletionTimestamp !== undefined
  const { hostname, subdomain, nodeName } = pod.spec
  const zone = node?.metadata.labels?.['topology.kubernetes.io/zone']
  const ready = service.spec.publishNotReadyAddresses === true || (serving && !terminating)
  const hints = ready ? hintsOf(service, zone, nodeName) : undefined
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    ...(nodeName ? { nodeName } : {}),
    targetRef: { kind: 'Pod', namespace: pod.metadata.namespace, name: pod.metadata.name, uid: pod.metadata.uid },
    ...(zone ? { zone } : {}),
    ...(hostname && subdomain === service.metadata.name && pod.metadata.namespace === service.metadata.namespace ? { hostname } : {}),
    ...(hints ? { hints } : {}),
  }
}

/** True when an annotation asks for the hints of topologyCache.ts; if both annotations are set, the older one decides. */
export function wantsTopologyHints({ metadata: { annotations } }: Frozen<Service>): boolean {
  const mode = ownValue(annotations, deprecatedTopologyAnnotation) ?? ownValue(annotations, topologyModeAnnotation)
  return mode === 'Auto' || mode === 'auto'
}

/** spec.trafficDistribution; undefined when topology-mode Auto replaces it. */
export function trafficDistribution(service: Frozen<Service>): string | undefined {
  return wantsTopologyHints(service) ? undefined : service.spec.trafficDistribution
}

/** Clients that should prefer the endpoint: those in its zone, or on its node. Upstream: k8s.io/endpointslice/trafficdist. */
function hintsOf(service: Frozen<Service>, zone: string | undefined, nodeName: string | undefined): EndpointHints | undefined {
  const distribution = trafficDistribution(service)
  if (!distribution) return undefined
  const toNode = distribution === 'PreferSameNode' && nodeName
  if (!zone && !toNode) return undefined
  return { ...(zone ? { forZones: [{ name: zone }] } : {}), ...(toNode ? { forNodes: [{ name: nodeName }] } : {}) }
}

export function sliceLabels(service: Frozen<Service>): Record<string, string> {
  const labels: Record<string, string> = emptyMap()
  for (const [name, value] of Object.entries(service.metadata.labels ?? {})) if (!notCopiedLabels.has(name)) labels[name] = value
  labels[serviceNameLabel] = service.metadata.name ?? ''
  labels[managedByLabel] = managedBy
  if (isHeadless(service)) labels[headlessLabel] = ''
  return labels
}

export interface SlicePlan {
  readonly create: NewObject<EndpointSlice>[]
  readonly update: Frozen<EndpointSlice>[]
  readonly remove: Frozen<EndpointSlice>[]
  /** How many there will be, and of those how many are new or change; how many go from slices whose ports are still wanted. */
  readonly endpoints: { wanted: number; added: number; updated: number; removed: number }
}

/** The smallest change from the slices there are to the ones that are wanted, at most `max` endpoints each. */
export function planSlices(
  labels: Record<string, string>,
  wanted: ReadonlyMap<AddressType, readonly WantedEndpoints[]>,
  existing: readonly Frozen<EndpointSlice>[],
  newSlice: (type: AddressType) => NewObject<EndpointSlice>,
  max: number,
): SlicePlan {
  const plan: SlicePlan = { create: [], update: [], remove: [], endpoints: { wanted: 0, added: 0, updated: 0, removed: 0 } }
  const left = new Set(existing)
  for (const [type, groups] of wanted) {
    // A service without endpoints still has one, empty, slice.
    for (const group of groups.length > 0 ? groups : [{ ports: [], endpoints: [] }]) {
      const same = [...left].filter((slice) => slice.addressType === type && (samePorts(slice, group.ports) || group.endpoints.length === 0))
      const mine = group.endpoints.length === 0 ? same.slice(0, 1) : same
      for (const slice of mine) left.delete(slice)
      fillSlices(plan, group, mine, labels, () => newSlice(type), max)
    }
  }
  append(plan.remove, left)
  return plan
}

function samePorts(slice: Frozen<EndpointSlice>, ports: readonly EndpointPort[]): boolean {
  // Most slices were written in this order: sorting ten thousand ports takes longer than comparing them.
  if (semanticEqual(slice.ports ?? [], ports)) return true
  const sorted = (list: readonly Frozen<EndpointPort>[]) => [...list].sort((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1))
  return semanticEqual(sorted(slice.ports ?? []), sorted(ports))
}

/** Identifies an endpoint within a Service. */
export const idOf = (endpoint: Frozen<Endpoint>) => `${endpoint.targetRef?.uid ?? ''} ${endpoint.addresses.join(',')}`

function fillSlices(
  plan: SlicePlan,
  group: WantedEndpoints,
  slices: readonly Frozen<EndpointSlice>[],
  labels: Record<string, string>,
  newSlice: () => NewObject<EndpointSlice>,
  max: number,
): void {
  plan.endpoints.wanted += group.endpoints.length
  const missing = new Map(group.endpoints.map((endpoint) => [idOf(endpoint), endpoint]))
  const kept = slices.map((slice) => {
    const before = slice.endpoints ?? []
    let updated = 0
    const endpoints = before.flatMap((endpoint) => {
      const now = missing.get(idOf(endpoint))
      missing.delete(idOf(endpoint))
      if (now && !semanticEqual(now, endpoint)) updated++
      return now ? [now] : []
    })
    plan.endpoints.updated += updated
    plan.endpoints.removed += before.length - endpoints.length
    const changed = updated > 0 || endpoints.length !== before.length
    return { slice, endpoints, changed }
  })
  const additions = [...missing.values()]
  plan.endpoints.added += additions.length
  // Slices that are written anyway take the new ones first; then the fullest that has room for all of the rest.
  for (const one of kept) if (one.changed) append(one.endpoints, additions.splice(0, Math.max(0, max - one.endpoints.length)))
  if (additions.length > 0) {
    const roomy = kept
      .filter((one) => !one.changed && one.endpoints.length + additions.length <= max)
      .sort((a, b) => b.endpoints.length - a.endpoints.length)[0]
    if (roomy) {
      append(roomy.endpoints, additions.splice(0))
      roomy.changed = true
    }
  }
  let written = 0
  for (const { slice, endpoints, changed } of kept) {
    const onlyEmpty = group.endpoints.length === 0 && written === 0
    if (endpoints.length === 0 && !onlyEmpty) {
      plan.remove.push(slice)
      continue
    }
    written++
    const portsChanged = !samePorts(slice, group.ports)
    if (!changed && !portsChanged && semanticEqual(slice.metadata.labels, labels)) continue
    plan.update.push({ ...slice, metadata: { ...slice.metadata, labels }, endpoints, ports: deepCopy(group.ports) } as Frozen<EndpointSlice>)
  }
  if (group.endpoints.length === 0 && written === 0) plan.create.push({ ...newSlice(), endpoints: [], ports: deepCopy(group.ports) })
  while (additions.length > 0) plan.create.push({ ...newSlice(), endpoints: additions.splice(0, max), ports: deepCopy(group.ports) })
}
