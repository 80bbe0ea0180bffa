/** Addresses and ports in a service's spec (L3, pure). */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { ServiceRef } from './ipAllocator.ts'

/** The addresses that the service has taken; none for headless services. */
export function clusterIpsOf(service: Frozen<Service>): readonly string[] {
  const { clusterIP, clusterIPs } = service.spec ?? {}
  return (clusterIPs ?? (clusterIP ? [clusterIP] : [])).filter((ip) => ip !== 'None' && ip !== '')
}

/** Each once: one service may use one node port for several protocols. */
export function nodePortsOf(service: Frozen<Service>): ReadonlySet<number> {
  const { ports, healthCheckNodePort } = service.spec ?? {}
  const found = new Set<number>()
  for (const { nodePort } of ports ?? []) if (nodePort) found.add(nodePort)
  if (healthCheckNodePort) found.add(healthCheckNodePort)
  return found
}

export function serviceRef({ metadata }: Frozen<Service>): ServiceRef {
  return { namespace: metadata.namespace ?? '', name: metadata.name ?? '' }
}

export function needsClusterIp(service: Frozen<Service>): boolean {
  return (service.spec?.type ?? 'ClusterIP') !== 'ExternalName' && service.spec?.clusterIP !== 'None' && service.spec?.clusterIPs?.[0] !== 'None'
}

/** Whether the type allows node ports; only asked-for ones are allocated unless {@link allocatesNodePorts}. */
export function mayHaveNodePorts(service: Frozen<Service>): boolean {
  const type = service.spec?.type
  return type === 'NodePort' || type === 'LoadBalancer'
}

/** Whether ports without a node port get one. */
export function allocatesNodePorts(service: Frozen<Service>): boolean {
  const { type, allocateLoadBalancerNodePorts } = service.spec ?? {}
  return type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts !== false)
}

export function needsHealthCheckPort(service: Frozen<Service>): boolean {
  return service.spec?.type === 'LoadBalancer' && service.spec.externalTrafficPolicy === 'Local'
}
