/** Where a node's kubelet listens (L3). Upstream: pkg/kubelet/client NodeConnectionInfoGetter. */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { ObjectReader } from '../../admission/admission.ts'
import type { Backend, KubeletCredentials } from './backend.ts'

/** Upstream's --kubelet-preferred-address-types, with addresses before names that may not resolve here. */
const addressTypes = ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS']
const defaultPort = 10250

export function nodeBackend(reader: ObjectReader, nodeName: string, path: string, kubelet: KubeletCredentials | undefined): Backend | undefined {
  const node = reader.get<KubeObject>({ group: '', resource: 'nodes' }, '', nodeName) as Frozen<Node> | undefined
  const addresses = node?.status?.addresses ?? []
  for (const type of addressTypes) {
    const host = addresses.find((one) => one.type === type)?.address
    if (host) return { host, port: node?.status?.daemonEndpoints?.kubeletEndpoint?.Port || defaultPort, tls: kubelet ?? {}, path }
  }
  return undefined
}
