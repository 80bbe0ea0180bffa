/** Where a node's kubelet listens (L3). Upstream: pkg/kubelet/client NodeConnectionInfoGetter. */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import { authority, type Backend, type BackendTls } from '../../backends/backend.ts'
import type { OwnEndpoints } from '../../backends/ownEndpoints.ts'
import { isProxyableAddress } from '../../backends/proxyableAddress.ts'
import type { Reach } from '../../backends/reach.ts'
import type { ObjectReader } from '../../core/objectReader.ts'

/** The API server's own credentials towards kubelets. Without `ca` their certificates are not checked, as upstream's default. */
export interface KubeletAccess extends BackendTls {
  /**
   * The loopback address on which this process runs the kubelet of that node, if the node's status names the address and port that the kubelet publishes.
   * Present: loopback and link-local addresses are connected to only then, whatever the status says. Absent: log, exec and the like follow the status, as
   * upstream; the node proxy never goes to such addresses.
   */
  readonly ownKubelet?: ((nodeName: string, address: string, port: number) => string | undefined) | undefined
  /** Upstream's --kubelet-preferred-address-types; absent: addresses before names, which may not resolve here. */
  readonly addressTypes?: readonly string[] | undefined
}

const defaultAddressTypes = ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS']
const defaultPort = 10250
const nodes = { group: '', resource: 'nodes' }

export interface NodeReach {
  readonly kubelet?: KubeletAccess | undefined
  readonly ownEndpoints: OwnEndpoints
  /** How connections to addresses of the cluster are made; absent: by this process. */
  readonly reach?: Reach | undefined
}

export interface NodeBackend extends Backend {
  /** Whether this process runs the kubelet. */
  readonly isOwn: boolean
  /** Whether the kubelet takes port-forward through WebSockets; others know SPDY. */
  readonly takesTunnels: boolean
}

const tunnelFeature = 'ExtendWebSocketsToKubelet'

/** @throws NotFound for an unknown node, and a 500 with upstream's text for one without addresses */
export function nodeBackend(reader: ObjectReader, nodeName: string, path: string, { kubelet, ownEndpoints, reach }: NodeReach): NodeBackend {
  const node = reader.get<KubeObject>(nodes, '', nodeName) as Frozen<Node> | undefined
  if (!node) throw notFound(nodes, nodeName)
  const addresses = node.status?.addresses ?? []
  const takesTunnels = node.status?.declaredFeatures?.includes(tunnelFeature) ?? false
  for (const type of kubelet?.addressTypes ?? defaultAddressTypes) {
    const host = addresses.find((one) => one.type === type)?.address
    if (!host) continue
    const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port || defaultPort
    const own = kubelet?.ownKubelet?.(nodeName, host, port)
    const isAllowed = (address: string) => (own === undefined ? !kubelet?.ownKubelet || isProxyableAddress(address) : address === own)
    const mayDial = (address: string) => !ownEndpoints.has(address, port) && isAllowed(address)
    // Simulated nodes share a port, which tells them apart by their addresses.
    const hostHeader = own === undefined ? undefined : authority({ host, port })
    return { host: own ?? host, port, tls: kubelet ?? {}, path, hostHeader, mayDial, reach, isOwn: own !== undefined, takesTunnels }
  }
  throw new StatusError('', `no preferred addresses found; known addresses: [${addresses.map((one) => `{${one.type} ${one.address}}`).join(' ')}]`)
}
