/** Where a node's kubelet listens (L3). Upstream: pkg/kubelet/client NodeConnectionInfoGetter. */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import type { Backend, BackendTls } from '../../backends/backend.ts'
import type { OwnEndpoints } from '../../backends/ownEndpoints.ts'
import { isProxyableAddress } from '../../backends/proxyableAddress.ts'
import type { Reach } from '../../backends/reach.ts'
import type { ObjectReader } from '../../core/objectReader.ts'

/** The API server's own credentials towards kubelets. Without `ca` their certificates are not checked, as upstream's default. */
export interface KubeletAccess extends BackendTls {
  /**
   * Whether this process runs the kubelet of that node at that address and port. Present: loopback and link-local addresses are connected to only then,
   * whatever the node's status has. Absent: log, exec and the like follow the status, as upstream; the node proxy never goes to such addresses.
   */
  readonly isOwnKubelet?: ((nodeName: string, address: string, port: number) => boolean) | undefined
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

/** @throws NotFound for an unknown node, and a 500 with upstream's text for one without addresses */
export function nodeBackend(reader: ObjectReader, nodeName: string, path: string, { kubelet, ownEndpoints, reach }: NodeReach): Backend {
  const node = reader.get<KubeObject>(nodes, '', nodeName) as Frozen<Node> | undefined
  if (!node) throw notFound(nodes, nodeName)
  const addresses = node.status?.addresses ?? []
  for (const type of kubelet?.addressTypes ?? defaultAddressTypes) {
    const host = addresses.find((one) => one.type === type)?.address
    if (!host) continue
    const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port || defaultPort
    const isOwn = kubelet?.isOwnKubelet
    const mayDial = (address: string) => !ownEndpoints.has(address, port) && (!isOwn || isProxyableAddress(address) || isOwn(nodeName, address, port))
    return { host, port, tls: kubelet ?? {}, path, mayDial, reach }
  }
  throw new StatusError('', `no preferred addresses found; known addresses: [${addresses.map((one) => `{${one.type} ${one.address}}`).join(' ')}]`)
}
