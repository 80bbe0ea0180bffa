/** What the other parts of a node's agent say about its network, for the kubelet's views (L3). Each is absent when another program does that work. */
import type { NetworkProbe, NetworkProbeResults, NodeRoutes, NodeServiceRules } from '#api/debug/nodeNetwork'

export interface NodeNetwork {
  /** @param service namespace/name */
  serviceRules?(service: string): Promise<NodeServiceRules>
  routes?(): Promise<NodeRoutes>
  /** Ends within a few seconds. @throws Error when the program of the probe fails */
  probe?(probe: NetworkProbe): Promise<NetworkProbeResults>
}
