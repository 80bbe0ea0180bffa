/**
 * Objects that every cluster has from the start (L3), as data.
 * Upstream: pkg/controlplane/controller/systemnamespaces, defaultservicecidr, pkg/registry/scheduling/rest.
 */
import type { Endpoints, Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { familyOf } from '../kinds/services/ipRange.ts'

export const systemNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease'] as const

export const systemPriorityClasses = [
  {
    metadata: { name: 'system-node-critical' },
    value: 2_000_001_000,
    description: 'For pods that their node cannot do without; they must not be moved away from it.',
  },
  {
    metadata: { name: 'system-cluster-critical' },
    value: 2_000_000_000,
    description: 'For pods that the cluster cannot do without; they may run on another node.',
  },
] as const

/** Where clients inside the cluster reach this API server. */
export interface Advertised {
  readonly address: string
  readonly port: number
}

/** The Service `kubernetes`: the first address of the range, leading to the API server. */
export function kubernetesService(clusterIP: string, advertised: Advertised): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { provider: 'kubernetes', component: 'apiserver' } },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: [familyOf(clusterIP)],
      ipFamilyPolicy: 'SingleStack',
      sessionAffinity: 'None',
      ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: advertised.port }],
    },
    status: { loadBalancer: {} },
  }
}

/** @param addresses of all servers, sorted; none: the service leads nowhere */
export function kubernetesEndpoints(addresses: readonly string[], port: number): Endpoints {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: addresses.length === 0 ? [] : [{ addresses: addresses.map((ip) => ({ ip })), ports: [{ name: 'https', protocol: 'TCP', port }] }],
  }
}

/** A slice has the addresses of one family: IPv6 only if all addresses are. */
export function kubernetesEndpointSlice(addresses: readonly string[], port: number): EndpointSlice {
  const addressType = addresses.length > 0 && addresses.every((address) => familyOf(address) === 'IPv6') ? 'IPv6' : 'IPv4'
  const shown = addresses.filter((address) => familyOf(address) === addressType)
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType,
    endpoints: shown.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: addresses.length === 0 ? [] : [{ name: 'https', protocol: 'TCP', port }],
  }
}
