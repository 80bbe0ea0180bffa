/**
 * Chooses the addresses that the cluster gives to a service of type LoadBalancer (L3, pure): nodes' addresses where the ports are free.
 * Proxies on the nodes take what arrives there. Upstream leaves this to cloud providers: cloud-provider/controllers/service (v1.36).
 */
import type { LoadBalancerIngress, Node, Service } from '#api/gen/types/core.v1'
import { isNodeReady } from '#api/helpers/nodes'
import { ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { parseTime } from '#base/time'

const excludeLabel = 'node.kubernetes.io/exclude-from-external-load-balancers'
const autoscalerTaint = 'ToBeDeletedByClusterAutoscaler'

export interface PortOfNode {
  readonly port: number
  readonly protocol: string
}

/** The holder of a port of an address, as `namespace/name` or in words; undefined: the port is free. */
export type HolderOf = (address: string, port: PortOfNode) => string | undefined

export interface Assignment {
  readonly ingress: readonly Frozen<LoadBalancerIngress>[]
  /** Why addresses are missing; undefined: none are. */
  readonly problem: string | undefined
}

/** A service with a loadBalancerClass belongs to another load balancer. */
export function wantsLoadBalancer({ spec }: Frozen<Service>): boolean {
  return spec.type === 'LoadBalancer' && spec.loadBalancerClass === undefined
}

/** Ready, and neither excluded by its label nor about to be taken away. */
export function takesTraffic(node: Frozen<Node>): boolean {
  if (node.metadata.labels?.[excludeLabel] !== undefined || node.spec.taints?.some(({ key }) => key === autoscalerTaint)) return false
  return isNodeReady(node)
}

export function internalAddresses(node: Frozen<Node>): string[] {
  return (node.status?.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []))
}

export function portsOf({ spec }: Frozen<Service>): PortOfNode[] {
  return (spec.ports ?? []).map(({ port, protocol = 'TCP' }) => ({ port, protocol }))
}

/** The address is the service's by its status, together with this port. */
export function holdsPort(service: Frozen<Service>, address: string, wanted: PortOfNode): boolean {
  const ingress = service.status?.loadBalancer?.ingress?.find(({ ip }) => ip === address)
  return ingress?.ports?.some(({ port, protocol }) => port === wanted.port && protocol === wanted.protocol) ?? false
}

/** The first of `rivals` that has the port of this address. When two got the same port at once, the older keeps it. */
export function rivalWithPort(service: Frozen<Service>, rivals: readonly Frozen<Service>[], address: string, port: PortOfNode): Frozen<Service> | undefined {
  const held = holdsPort(service, address, port)
  return rivals.find((rival) => holdsPort(rival, address, port) && (!held || isOlder(rival, service)))
}

const createdMs = ({ metadata }: Frozen<Service>) => parseTime(metadata.creationTimestamp ?? '') ?? 0

function isOlder(a: Frozen<Service>, b: Frozen<Service>): boolean {
  const difference = createdMs(a) - createdMs(b)
  return difference !== 0 ? difference < 0 : (a.metadata.uid ?? '') < (b.metadata.uid ?? '')
}

/**
 * The service's addresses, in the order of its families: those of `candidates` where all of its ports are free, or the one that it asks for.
 * @param candidates addresses of the nodes that may take its traffic; simulated nodes share one
 */
export function assignAddresses(service: Frozen<Service>, candidates: readonly string[], holderOf: HolderOf): Assignment {
  const { ipFamilies = [], loadBalancerIP: asked } = service.spec
  const distinct = [...new Set(candidates)]
  const sorted = ipFamilies.flatMap((family) => distinct.filter((address) => `IPv${ipFamily(address)}` === family).sort())
  const wanted = asked ? sorted.filter((address) => address === asked) : sorted
  if (asked && wanted.length === 0) return { ingress: [], problem: `no node that may take its traffic has the address ${asked}` }
  const ports = portsOf(service)
  let problem: string | undefined
  const free = wanted.filter((address) => {
    const taken = ports.map((port) => ({ port, holder: holderOf(address, port) })).find(({ holder }) => holder !== undefined)
    if (taken) problem ??= `port ${taken.port.port}/${taken.port.protocol} of ${address} is taken by ${taken.holder}`
    return !taken
  })
  return { ingress: free.map((ip) => ({ ip, ipMode: 'VIP', ports })), problem }
}
