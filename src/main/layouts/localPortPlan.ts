/**
 * Which ports of this host's loopback addresses a cluster serves (L5), pure: node ports, and ports of load balancers whose addresses are those of real nodes.
 * Upstream has none of it; the counterparts are port mappings of kind and k3d.
 */
import type { Node, Service } from '#api/gen/types/core.v1'
import { isNodeReady, nodeAddress } from '#api/helpers/nodes'
import { loadBalancerSourceRanges } from '#api/helpers/services'
import { cidrContains, parseCidr, parseIp } from '#api/machinery/ip'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { parseTime } from '#base/time'
import type { ForwardedPort } from './portForwarder.ts'

export interface LocalPort extends ForwardedPort {
  readonly service: Frozen<Service>
  readonly use: 'node port' | 'load balancer'
  /** Load balancer: the node port of the same port of the Service, which answers on localhost too. */
  readonly nodePort?: number | undefined
}

export interface RefusedPort {
  readonly service: Frozen<Service>
  readonly protocol: ForwardedPort['protocol']
  readonly port: number
  readonly nodePort?: number | undefined
  /** For users of the Service's namespace. */
  readonly reason: string
  /** For the host's user, when it says more. */
  readonly details?: string | undefined
}

export interface LocalPortPlan {
  /** By `PROTOCOL/PORT`; node ports first, then load balancers from the oldest to the newest. */
  readonly ports: ReadonlyMap<string, LocalPort>
  /** Ports of load balancers that this cluster itself keeps from localhost. */
  readonly refused: readonly RefusedPort[]
}

/** Sockets of one process; each port takes two. */
export const maxLocalPorts = 1024
/** Nodes that a connection may be tried at. */
const maxTargets = 16

export function localPortKey({ protocol, port }: Pick<ForwardedPort, 'protocol' | 'port'>): string {
  return `${protocol}/${port}`
}

/**
 * @param isReal whether a node with this address is one of this cluster's real nodes
 * @param published ports that lead elsewhere, by `PROTOCOL/PORT`: the user asked for that
 */
export function planLocalPorts(
  services: readonly Frozen<Service>[],
  nodes: readonly Frozen<Node>[],
  isReal: (address: string) => boolean,
  published: ReadonlySet<string> = new Set(),
): LocalPortPlan {
  const ports = new Map<string, LocalPort>()
  const refused: RefusedPort[] = []
  const addresses = realNodeAddresses(nodes, isReal)
  const oldestFirst = services
    .filter(({ spec }) => spec.type === 'NodePort' || spec.type === 'LoadBalancer')
    .sort((a, b) => createdMs(a) - createdMs(b) || (keyOf(a) < keyOf(b) ? -1 : 1))
  const nodePorts = oldestFirst.flatMap((service) => nodePortsOf(service, addresses))
  for (const one of [...nodePorts, ...oldestFirst.flatMap((service) => balancedPortsOf(service, isReal))]) {
    if (published.has(localPortKey(one))) continue
    const refusal = reasonToRefuse(one, ports)
    if (!refusal) ports.set(localPortKey(one), one)
    else refused.push({ service: one.service, protocol: one.protocol, port: one.port, nodePort: one.nodePort, ...refusal })
  }
  return { ports, refused }
}

function reasonToRefuse(one: LocalPort, ports: ReadonlyMap<string, LocalPort>): Pick<RefusedPort, 'reason' | 'details'> | undefined {
  const rival = ports.get(localPortKey(one))
  if (rival) return reasonOfRival(one, rival)
  if (one.use === 'load balancer' && !admitsLocalhost(one.service)) return { reason: '127.0.0.1 is not in its loadBalancerSourceRanges' }
  return ports.size >= maxLocalPorts ? { reason: `${maxLocalPorts} ports of the cluster are open there already` } : undefined
}

/** Users of one namespace need not have the right to see the Services of another one. */
function reasonOfRival({ service }: LocalPort, rival: LocalPort): Pick<RefusedPort, 'reason' | 'details'> {
  const details = `it is the ${rival.use} of Service ${keyOf(rival.service)}`
  const isVisible = rival.service.metadata.namespace === service.metadata.namespace
  return isVisible ? { reason: details } : { reason: `it is the ${rival.use} of a Service in another namespace`, details }
}

const createdMs = ({ metadata }: Frozen<Service>) => parseTime(metadata.creationTimestamp ?? '') ?? 0

function nodePortsOf(service: Frozen<Service>, addresses: readonly string[]): LocalPort[] {
  return (service.spec.ports ?? []).flatMap(({ nodePort, protocol = 'TCP' }) => {
    if (!nodePort || (protocol !== 'TCP' && protocol !== 'UDP')) return []
    return [{ protocol, port: nodePort, service, use: 'node port', targets: addresses.map((address) => ({ address, port: nodePort })) }]
  })
}

/** The ports of a Service whose load balancer is the cluster itself. With the Local policy its addresses are those of nodes with an endpoint. */
function balancedPortsOf(service: Frozen<Service>, isReal: (address: string) => boolean): LocalPort[] {
  const { type, loadBalancerClass, ports = [] } = service.spec
  if (type !== 'LoadBalancer' || loadBalancerClass !== undefined) return []
  const ingress = service.status?.loadBalancer?.ingress ?? []
  return ports.flatMap(({ port, nodePort, protocol = 'TCP' }) => {
    if (protocol !== 'TCP' && protocol !== 'UDP') return []
    const held = ingress.filter((one) => one.ports?.some((its) => its.port === port && its.protocol === protocol))
    const addresses = held.flatMap(({ ip }) => (ip !== undefined && isReal(ip) ? [ip] : [])).slice(0, maxTargets)
    if (addresses.length === 0) return []
    // Nodes compare loadBalancerSourceRanges with the forwarder's address, not with 127.0.0.1, and only for the load balancer's own port.
    const targets = addresses.map((address) => ({ address, port: nodePort || port }))
    return [{ protocol, port, service, use: 'load balancer', nodePort: nodePort || undefined, targets }]
  })
}

const localhost = parseIp('127.0.0.1')

/** Whether the ranges that may use the load balancer, if there are any, contain 127.0.0.1. */
function admitsLocalhost(service: Frozen<Service>): boolean {
  const ranges = loadBalancerSourceRanges(service)
  if (ranges.length === 0) return true
  return ranges.some((range) => {
    const block = parseCidr(range)
    return block && localhost && cidrContains(block, localhost)
  })
}

/** Addresses of the real nodes, those that are Ready first. */
export function realNodeAddresses(list: readonly Frozen<Node>[], isReal: (address: string) => boolean): string[] {
  const addresses = (some: readonly Frozen<Node>[]) =>
    some.map((node) => nodeAddress(node, 'InternalIP')).filter((one) => one !== undefined && isReal(one)) as string[]
  return [...addresses(list.filter(isNodeReady)), ...addresses(list.filter((node) => !isNodeReady(node)))].slice(0, maxTargets)
}
