/** Where a node's kubelet listens (L3). Upstream: pkg/kubelet/client NodeConnectionInfoGetter. */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import type { ObjectReader } from '../../admission/admission.ts'
import type { Backend, BackendTls } from '../../backends/backend.ts'

/** The API server's own credentials towards kubelets. Without `ca` their certificates are not checked, as upstream's default. */
export interface KubeletAccess extends BackendTls {
  /** Kubelets of simulated nodes live on this host's loopback address; without this the node proxy does not go there. */
  readonly allowLoopback?: boolean | undefined
  /** Upstream's --kubelet-preferred-address-types; absent: addresses before names, which may not resolve here. */
  readonly addressTypes?: readonly string[] | undefined
}

const defaultAddressTypes = ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS']
const defaultPort = 10250
const nodes = { group: '', resource: 'nodes' }

/** @throws NotFound for an unknown node, and a 500 with upstream's text for one without addresses */
export function nodeBackend(reader: ObjectReader, nodeName: string, path: string, kubelet: KubeletAccess | undefined): Backend {
  const node = reader.get<KubeObject>(nodes, '', nodeName) as Frozen<Node> | undefined
  if (!node) throw notFound(nodes, nodeName)
  const addresses = node.status?.addresses ?? []
  for (const type of kubelet?.addressTypes ?? defaultAddressTypes) {
    const host = addresses.find((one) => one.type === type)?.address
    if (host) return { host, port: node.status?.daemonEndpoints?.kubeletEndpoint?.Port || defaultPort, tls: kubelet ?? {}, path }
  }
  throw new StatusError('', `no preferred addresses found; known addresses: [${addresses.map((one) => `{${one.type} ${one.address}}`).join(' ')}]`)
}
