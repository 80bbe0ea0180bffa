/** The configuration that the server writes for a node's agent (L5): one JSON file in the node's folder. */

export interface AgentConfig {
  readonly nodeName: string
  readonly nodeAddress: string
  /** URL of the API as the node reaches it. */
  readonly server: string
  /** PEM texts. The kubelet is the node; proxy and DNS have identities of their own. */
  readonly ca: string
  readonly kubelet: { readonly clientCert: string; readonly clientKey: string; readonly servingCert: string; readonly servingKey: string }
  readonly proxy: { readonly clientCert: string; readonly clientKey: string }
  readonly dns: { readonly clientCert: string; readonly clientKey: string }
  readonly cgroupRoot: string
  readonly clusterCidr: string
  readonly serviceCidr: string
  readonly clusterDns: string
  readonly clusterDomain: string
}

/** The cluster's address plan: the same for every local cluster, each in namespaces of its own. */
export const addressPlan = {
  clusterCidr: '10.244.0.0/16',
  serviceCidr: '10.96.0.0/16',
  clusterDns: '10.96.0.10',
  clusterDomain: 'cluster.local',
} as const

/** Identities of the proxy and of DNS; each node has its own. */
export const proxyUser = 'system:kube-proxy'
export const dnsUser = 'system:cluster-dns'
