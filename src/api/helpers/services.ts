/** Questions about services (L1). Upstream: kubernetes/pkg/api/v1/service/util.go, component-helpers/node/util, pkg/api/v1/pod FindPort (v1.36). */
import type { Pod, Service, ServicePort } from '#api/gen/types/core.v1'
import type { Ingress } from '#api/gen/types/networking.v1'
import type { Frozen } from '#api/machinery/meta'

/** The port number of a pod that a service port leads to; undefined when the pod has no port of that name and protocol. */
export function findTargetPort(pod: Frozen<Pod>, port: Frozen<ServicePort>): number | undefined {
  const target = port.targetPort ?? port.port
  if (typeof target === 'number') return target || port.port
  const sidecars = (pod.spec.initContainers ?? []).filter((container) => container.restartPolicy === 'Always')
  for (const container of [...(pod.spec.containers ?? []), ...sidecars]) {
    for (const candidate of container.ports ?? []) {
      if (candidate.name === target && (candidate.protocol ?? 'TCP') === (port.protocol ?? 'TCP')) return candidate.containerPort
    }
  }
  return undefined
}

export function isHeadless(service: Frozen<Service>): boolean {
  return service.spec.clusterIP === 'None'
}

/** Has a cluster IP that a proxy serves. */
export function hasClusterIp(service: Frozen<Service>): boolean {
  return service.spec.type !== 'ExternalName' && !isHeadless(service) && Boolean(service.spec.clusterIP)
}

/** Reachable from outside: node ports, load balancers, or cluster IPs with external addresses. */
export function isExternallyAccessible(service: Frozen<Service>): boolean {
  const { type, externalIPs } = service.spec
  return type === 'LoadBalancer' || type === 'NodePort' || ((type === 'ClusterIP' || type === undefined) && Boolean(externalIPs?.length))
}

/** Traffic from outside stays on the node that got it. */
export function externalPolicyLocal(service: Frozen<Service>): boolean {
  return isExternallyAccessible(service) && service.spec.externalTrafficPolicy === 'Local'
}

/** The port of each node at which a load balancer asks whether the node has endpoints; undefined when the Service has none. */
export function healthCheckNodePort(service: Frozen<Service>): number | undefined {
  return service.spec.type === 'LoadBalancer' && externalPolicyLocal(service) ? service.spec.healthCheckNodePort || undefined : undefined
}

/** Traffic from inside stays on the node that sent it. */
export function internalPolicyLocal(service: Frozen<Service>): boolean {
  return service.spec.internalTrafficPolicy === 'Local'
}

type Balanced = Frozen<Pick<Service, 'status'>> | Frozen<Pick<Ingress, 'status'>>

/** Where the load balancer of a Service or an Ingress is reached: addresses and host names. */
export function loadBalancerAddresses({ status }: Balanced): readonly string[] {
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => ip ?? hostname ?? [])
}

/** loadBalancerSourceRanges, or the annotation that preceded it; without either, all addresses may connect. */
export function loadBalancerSourceRanges(service: Frozen<Service>): readonly string[] {
  const ranges = service.spec.loadBalancerSourceRanges
  if (ranges?.length) return ranges.map((range) => range.trim())
  const annotation = service.metadata.annotations?.['service.beta.kubernetes.io/load-balancer-source-ranges']?.trim()
  return annotation ? annotation.split(',').map((range) => range.trim()) : []
}
