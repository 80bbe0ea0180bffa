/** The configuration of a node's agent (L5): one JSON file in the node's folder, written by the server that starts the agent. */
import type { FeatureGateSettings } from '#base/featureGates'

export interface AgentConfig {
  readonly nodeName: string
  /** Of IPv6 in a cluster without IPv4. */
  readonly nodeAddress: string
  /** With two address families. */
  readonly nodeAddressIpv6?: string | undefined
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
  /** How packets get from pod to pod: the name of a route mode, or none. Absent: the first mode. */
  readonly podNetwork?: string | undefined
  readonly clusterDns: string
  readonly clusterDomain: string
  /** Addresses of the host on the cluster's bridge. Absent in the file of an earlier version. */
  readonly hostAddresses?: readonly string[] | undefined
  /** The host's resolv.conf, without what only the host reaches. Absent: that of the node. */
  readonly resolvConf?: string | undefined
  /** The kubelet's --feature-gates. Absent in the file of an earlier version. */
  readonly featureGates?: FeatureGateSettings | undefined
}

/** The users of proxy, DNS and network policies. The kubelet's user is the node. */
export const proxyUser = 'system:kube-proxy'
export const dnsUser = 'system:cluster-dns'
export const policyUser = 'system:skiff-network-policy'
