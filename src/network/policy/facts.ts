/**
 * The facts of a pod that network policies depend on (L3), pure. Pods on the host's network share the node's address and finished pods have released
 * theirs, so neither has an address here. Upstream: sigs.k8s.io/kube-network-policies, PodByIP.
 */
import type { Container, Pod } from '#api/gen/types/core.v1'
import { formatIp, parseIp } from '#api/machinery/ip'
import type { LabelMap } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'

export type Protocol = 'tcp' | 'udp' | 'sctp'

export type Family = 'v4' | 'v6'

/** @param address as text */
export const familyOf = (address: string): Family => (address.includes(':') ? 'v6' : 'v4')

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
  readonly ports: readonly NamedPort[]
}

const protocols: Readonly<Record<string, Protocol>> = bareMap({ TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' })

/** The protocol of an API field, in the spelling of nft(8). Undefined for a protocol that NetworkPolicy does not have. */
export function protocolOf(text = 'TCP'): Protocol | undefined {
  return protocols[text]
}

const none: LabelMap = {}

/** @param announced the addresses that the node's kubelet reports before the API has them */
export function podFactsOf(pod: Frozen<Pod>, announced?: readonly string[]): PodFacts {
  const { spec, status, metadata } = pod
  const hasAddress = !spec.hostNetwork && status?.phase !== 'Succeeded' && status?.phase !== 'Failed'
  const reported = status?.podIPs?.map(({ ip }) => ip) ?? (status?.podIP ? [status.podIP] : [])
  return {
    key: keyOf(pod),
    namespace: metadata.namespace ?? '',
    labels: metadata.labels ?? none,
    nodeName: spec.nodeName ?? '',
    addresses: hasAddress ? [...new Set((announced ?? reported).flatMap(canonical))] : [],
    ports: [...spec.containers, ...(spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')].flatMap(namedPorts),
  }
}

/** A node reports the addresses of its pods: a text that is no address must not reach a script for nft. */
function canonical(text: string | undefined): string[] {
  const ip = parseIp(text ?? '')
  return ip ? [formatIp(ip)] : []
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
    sameList(a.addresses, b.addresses, (x, y) => x === y) &&
    sameList(a.ports, b.ports, (x, y) => x.name === y.name && x.protocol === y.protocol && x.port === y.port) &&
    sameList(Object.entries(a.labels), Object.entries(b.labels), ([key, value], [otherKey, otherValue]) => key === otherKey && value === otherValue)
  )
}

function sameList<T>(a: readonly T[], b: readonly T[], same: (x: T, y: T) => boolean): boolean {
  return a.length === b.length && a.every((one, i) => same(one, b[i] as T))
}
