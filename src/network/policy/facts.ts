/**
 * The facts of a pod that network policies depend on (L3), pure. Pods on the host's network share the node's address and finished pods have released
 * theirs, so neither has an address here. Upstream: sigs.k8s.io/kube-network-policies, PodByIP.
 */
import type { Container, Pod } from '#api/gen/types/core.v1'
import { cidrContains, formatIp, type IpBlock, isIpv6, parseIp } from '#api/machinery/ip'
import type { LabelMap } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'

export type Protocol = 'tcp' | 'udp' | 'sctp'

export type Family = 'v4' | 'v6'

/** @param address as text */
export const familyOf = (address: string): Family => (isIpv6(address) ? 'v6' : 'v4')

export interface NamedPort {
  readonly name: string
  readonly protocol: Protocol
  readonly port: number
}

export interface PodFacts {
  /** namespace/name */
  readonly key: string
  readonly namespace: string
  readonly labels: LabelMap
  /** '' until the pod is bound. */
  readonly nodeName: string
  /** Canonical texts. */
  readonly addresses: readonly string[]
  /** The node's own kubelet says that the pod has these addresses. */
  readonly isAnnounced: boolean
  readonly ports: readonly NamedPort[]
}

const protocols: Readonly<Record<string, Protocol>> = bareMap({ TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' })

/** The protocol of an API field, in the spelling of nft(8). Undefined for a protocol that NetworkPolicy does not have. */
export function protocolOf(text = 'TCP'): Protocol | undefined {
  return protocols[text]
}

const none: LabelMap = {}

export interface AddressSources {
  /** The addresses that the node's kubelet reports before the API has them; they count instead of the API's. */
  readonly announced?: readonly string[] | undefined
  /** The ranges in which the API's addresses count: a node may report any address for its pods. Absent: all. */
  readonly ranges?: readonly IpBlock[] | undefined
}

export function podFactsOf(pod: Frozen<Pod>, { announced, ranges }: AddressSources = {}): PodFacts {
  const { spec, status, metadata } = pod
  const hasAddress = !spec.hostNetwork && status?.phase !== 'Succeeded' && status?.phase !== 'Failed'
  const reported = status?.podIPs?.map(({ ip }) => ip) ?? (status?.podIP ? [status.podIP] : [])
  const addresses = announced ? canonical(announced) : canonical(reported, ranges)
  return {
    key: keyOf(pod),
    namespace: metadata.namespace ?? '',
    labels: metadata.labels ?? none,
    nodeName: spec.nodeName ?? '',
    addresses: hasAddress ? addresses : [],
    isAnnounced: announced !== undefined,
    ports: [...spec.containers, ...(spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')].flatMap(namedPorts),
  }
}

/** A text that is no address must not reach a script for nft. */
function canonical(texts: readonly (string | undefined)[], ranges?: readonly IpBlock[]): string[] {
  const ips = texts.flatMap((text) => parseIp(text ?? '') ?? []).filter((ip) => !ranges || ranges.some((range) => cidrContains(range, ip)))
  return [...new Set(ips.map(formatIp))]
}

function namedPorts({ ports = [] }: Frozen<Container>): NamedPort[] {
  return ports.flatMap(({ name, protocol: text, containerPort }) => {
    const protocol = protocolOf(text)
    return name && protocol ? [{ name, protocol, port: containerPort }] : []
  })
}

/** Reduces a pod to the fields that facts are made from: a node's agent holds all pods of the cluster. */
export function slimPod(pod: Frozen<Pod>): Frozen<Pod> {
  const { metadata, spec, status } = pod
  const containers = (list: readonly Frozen<Container>[]) =>
    list.filter(({ ports }) => ports?.some(({ name }) => name)).map(({ name, ports, restartPolicy }) => ({ name, ports, restartPolicy }))
  return {
    apiVersion: pod.apiVersion,
    kind: pod.kind,
    metadata: { namespace: metadata.namespace, name: metadata.name, uid: metadata.uid, resourceVersion: metadata.resourceVersion, labels: metadata.labels },
    spec: {
      nodeName: spec.nodeName,
      hostNetwork: spec.hostNetwork,
      containers: containers(spec.containers),
      initContainers: spec.initContainers && containers(spec.initContainers),
    },
    status: status && { phase: status.phase, podIP: status.podIP, podIPs: status.podIPs },
  }
}

export function sameFacts(a: PodFacts, b: PodFacts): boolean {
  return (
    a.nodeName === b.nodeName &&
    a.isAnnounced === b.isAnnounced &&
    sameList(a.addresses, b.addresses, (x, y) => x === y) &&
    sameList(a.ports, b.ports, (x, y) => x.name === y.name && x.protocol === y.protocol && x.port === y.port) &&
    sameList(Object.entries(a.labels), Object.entries(b.labels), ([key, value], [otherKey, otherValue]) => key === otherKey && value === otherValue)
  )
}

function sameList<T>(a: readonly T[], b: readonly T[], same: (x: T, y: T) => boolean): boolean {
  return a.length === b.length && a.every((one, i) => same(one, b[i] as T))
}
