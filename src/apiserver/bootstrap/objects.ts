/**
 * Objects that every cluster has from the start (L3), as data.
 * Upstream: pkg/controlplane/controller/systemnamespaces, defaultservicecidr, pkg/registry/scheduling/rest.
 */
import type { Service } from '#api/gen/types/core.v1'
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

export function kubernetesEndpoints({ address, port }: Advertised) {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [{ addresses: [{ ip: address }], ports: [{ name: 'https', protocol: 'TCP', port }] }],
  }
}

export function kubernetesEndpointSlice({ address, port }: Advertised): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: 'https', protocol: 'TCP', port }],
  }
}
