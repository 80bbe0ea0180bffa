/** The configuration of a node's agent (L5): one JSON file in the node's folder, written by the server that starts the agent. */

export interface AgentConfig {
  readonly nodeName: string
  readonly nodeAddress: string
  /** URL of the API as the node reaches it. */
  readonly server: string
  /** PEM texts. The kubelet is the node; proxy, DNS and network policies have identities of their own. */
  readonly ca: string
  readonly kubelet: { readonly clientCert: string; readonly clientKey: string; readonly servingCert: string; readonly servingKey: string }
  readonly proxy: { readonly clientCert: string; readonly clientKey: string }
  readonly dns: { readonly clientCert: string; readonly clientKey: string }
  readonly policy: { readonly clientCert: string; readonly clientKey: string }
  readonly cgroupRoot: string
  readonly clusterCidr: string
  readonly serviceCidr: string
  /** A mode's name, or auto. Absent in the file of an earlier version. */
  readonly proxyMode?: string | undefined
  readonly clusterDns: string
  readonly clusterDomain: string
}

/** The users of proxy, DNS and network policies. The kubelet's user is the node. */
export const proxyUser = 'system:kube-proxy'
export const dnsUser = 'system:cluster-dns'
export const policyUser = 'system:skiff-network-policy'
