/** What a node says about its network in node.skiff.dev, and what it probes on request (L1). The proxy, the network agent and the kubelet make it; `skiff net` reads it. */

export interface ServiceRuleText {
  /** The chain, or the map with the key of its element. */
  readonly place: string
  /** As the kernel shows them. Absent: the proxy wants the rule, and the kernel does not have it. */
  readonly lines?: readonly string[] | undefined
  /** New connections that took the rule, where the mode counts them. */
  readonly connections?: number | undefined
}

export interface NodeServiceRules {
  /** The proxy mode. Absent: no proxy runs here. */
  readonly mode?: string | undefined
  /** The node should have a proxy, and it does not run. */
  readonly isStopped?: boolean | undefined
  /** Why nothing is shown, or not everything. */
  readonly note?: string | undefined
  readonly rules?: readonly ServiceRuleText[] | undefined
}

/** `local`: a pod of this node. `foreign`: in a range of the cluster, and not the agent's. */
export const routeStates = ['present', 'missing', 'foreign', 'local'] as const

export interface NodeRoute {
  readonly cidr: string
  readonly via?: string | undefined
  readonly device?: string | undefined
  readonly state: (typeof routeStates)[number]
}

export interface NodeNeighbour {
  readonly address: string
  readonly device?: string | undefined
  readonly linkAddress?: string | undefined
  /** The kernel's word: REACHABLE, STALE, FAILED. */
  readonly state: string
}

export interface NodeRoutes {
  readonly mode?: string | undefined
  readonly note?: string | undefined
  readonly podCIDRs?: readonly string[] | undefined
  readonly routes?: readonly NodeRoute[] | undefined
  readonly neighbours?: readonly NodeNeighbour[] | undefined
}

export interface Resolver {
  readonly servers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly string[]
}

export const questionTypes = ['A', 'AAAA', 'SRV'] as const

export interface DnsQuestion {
  readonly name: string
  readonly type: (typeof questionTypes)[number]
}

export interface DnsAnswer extends DnsQuestion {
  readonly server: string
  /** NOERROR, NXDOMAIN, NODATA, TIMEOUT and so on. */
  readonly code: string
  /** Addresses, or `PORT TARGET` of SRV records. */
  readonly records?: readonly string[] | undefined
}

export interface Connection {
  readonly address: string
  readonly port: number
  /** `tls`: with a handshake after the connection. */
  readonly protocol: 'tcp' | 'tls'
  /** The name that the certificate must have, for `tls`. */
  readonly serverName?: string | undefined
}

export interface ConnectionResult extends Connection {
  /** `connected`, or an error code: ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH. */
  readonly outcome: string
  readonly certificateSubject?: string | undefined
  readonly certificateNotBefore?: string | undefined
  readonly certificateNotAfter?: string | undefined
  /** Why the certificate is not one of serverName. Absent: it is, or no name was given. Who signed it is not judged. */
  readonly certificateNameFault?: string | undefined
}

export interface NetworkProbe {
  /** Absent: none, for the node itself. */
  readonly namespacePath?: string | undefined
  readonly servers: readonly string[]
  readonly questions: readonly DnsQuestion[]
  readonly connections: readonly Connection[]
}

export interface NetworkProbeResults {
  readonly answers: readonly DnsAnswer[]
  readonly connections: readonly ConnectionResult[]
}

export interface NetworkProbes extends Partial<NetworkProbeResults> {
  readonly note?: string | undefined
  /** What the kubelet wrote into the pod's /etc/resolv.conf; of a node: cluster DNS. */
  readonly resolver?: Resolver | undefined
}
