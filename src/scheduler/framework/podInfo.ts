/**
 * A pod with what scheduling asks of it again and again, computed once (L3).
 * Upstream: pkg/scheduler/framework/types.go PodInfo, AffinityTerm.
 */
import type { Container, Pod, PodAffinityTerm, WeightedPodAffinityTerm } from '#api/gen/types/core.v1'
import { hostPortsOf } from '#api/helpers/hostPorts'
import { podRequests, type ResourceAmounts } from '#api/helpers/podResources'
import { podPriority } from '#api/helpers/pods'
import { claimNameOf } from '#api/helpers/volumes'
import { type LabelMap, nothing, type Selector, selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'

/** What a container without requests counts as when nodes are scored (upstream schedutil DefaultMilliCPURequest, DefaultMemoryRequest). */
const missingRequests: ResourceAmounts = { cpu: 100, memory: 200 * 1024 * 1024 }

/** One compiled term of pod affinity or anti-affinity. */
export interface AffinityTerm {
  readonly topologyKey: string
  readonly selector: Selector
  readonly namespaces: ReadonlySet<string>
  /** Matches nothing when the term has none. */
  readonly namespaceSelector: Selector
  /** The same for terms that mean the same. */
  readonly text: string
}

export interface WeightedAffinityTerm extends AffinityTerm {
  readonly weight: number
}

export interface PodInfo {
  /** `namespace/name`. */
  readonly key: string
  readonly pod: Frozen<Pod>
  readonly priority: number
  readonly requests: ResourceAmounts
  /** Requests of the pod, as values that are compared for every node. */
  readonly milliCpu: number
  readonly memory: number
  /** The names of the others: storage, huge pages, extended resources. */
  readonly otherResources: readonly string[]
  /** cpu and memory, with a floor for containers that ask for nothing. */
  readonly nonZeroMilliCpu: number
  readonly nonZeroMemory: number
  /** `TCP/0.0.0.0/8080`. */
  readonly hostPorts: readonly string[]
  /** Keys `namespace/name` of the claims that its volumes name, or that are made for them. */
  readonly pvcs: readonly string[]
  readonly requiredAffinity: readonly AffinityTerm[]
  readonly requiredAntiAffinity: readonly AffinityTerm[]
  readonly preferredAffinity: readonly WeightedAffinityTerm[]
  readonly preferredAntiAffinity: readonly WeightedAffinityTerm[]
}

export function podInfo(pod: Frozen<Pod>): PodInfo {
  const requests = podRequests(pod, { useStatusResources: true })
  const nonZero = asksForAll(pod) ? requests : podRequests(pod, { useStatusResources: true, missingRequests })
  const affinity = pod.spec.affinity
  return {
    key: keyOf(pod),
    pod,
    priority: podPriority(pod),
    requests,
    milliCpu: requests.cpu ?? 0,
    memory: requests.memory ?? 0,
    otherResources: othersOf(requests),
    nonZeroMilliCpu: nonZero.cpu ?? 0,
    nonZeroMemory: nonZero.memory ?? 0,
    hostPorts: hostPortsOf(pod),
    pvcs: pvcsOf(pod),
    requiredAffinity: termsOf(pod, affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    requiredAntiAffinity: termsOf(pod, affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    preferredAffinity: weightedTermsOf(pod, affinity?.podAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    preferredAntiAffinity: weightedTermsOf(pod, affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
  }
}

/**
 * The same information with a newer state of the pod when nothing changed that it was computed from; undefined: compute it again. In place, because most
 * updates of a placed pod only report its containers; a copy when its labels changed, because plugins that select pods must be notified.
 */
export function withPod(info: PodInfo, pod: Frozen<Pod>): PodInfo | undefined {
  const { metadata, status } = info.pod
  const same =
    metadata.uid === pod.metadata.uid &&
    metadata.generation !== undefined &&
    metadata.generation === pod.metadata.generation &&
    metadata.deletionTimestamp === pod.metadata.deletionTimestamp &&
    allocated(status) === allocated(pod.status)
  if (!same) return undefined
  if (!sameLabels(metadata.labels, pod.metadata.labels)) return { ...info, pod }
  ;(info as { pod: Frozen<Pod> }).pod = pod
  return info
}

function sameLabels(a: LabelMap | undefined, b: LabelMap | undefined): boolean {
  if (a === b) return true
  const names = Object.keys(a ?? {})
  return names.length === Object.keys(b ?? {}).length && names.every((name) => a?.[name] === b?.[name])
}

/** What the kubelet says it has set aside, which counts while a pod is resized. */
function allocated(status: Frozen<Pod>['status']): string {
  let text = ''
  for (const statuses of [status?.containerStatuses, status?.initContainerStatuses])
    for (const { resources, allocatedResources } of statuses ?? none)
      if (resources || allocatedResources) text += JSON.stringify([resources?.requests, allocatedResources])
  return text
}

/** Whether the term is about the pod. `namespaceLabels`: those of the pod's namespace. */
export function affinityTermMatches(term: AffinityTerm, pod: Frozen<Pod>, namespaceLabels: LabelMap | undefined): boolean {
  const inNamespace = term.namespaces.has(pod.metadata.namespace ?? '') || term.namespaceSelector.matches(namespaceLabels ?? {})
  return inNamespace && term.selector.matches(pod.metadata.labels ?? {})
}

/** Whether no container needs a default. */
function asksForAll({ spec }: Frozen<Pod>): boolean {
  const asks = ({ resources }: Frozen<Container>) => resources?.requests?.cpu !== undefined && resources.requests.memory !== undefined
  return spec.containers.every(asks) && (spec.initContainers ?? none).every(asks)
}

const none: readonly never[] = []

function othersOf(requests: ResourceAmounts): readonly string[] {
  let found: string[] | undefined
  for (const name in requests) {
    if (name === 'cpu' || name === 'memory' || requests[name] === 0) continue
    found ??= []
    found.push(name)
  }
  return found ?? none
}

function pvcsOf(pod: Frozen<Pod>): readonly string[] {
  let found: string[] | undefined
  for (const volume of pod.spec.volumes ?? none) {
    const name = claimNameOf(pod, volume)
    if (name === undefined) continue
    found ??= []
    found.push(`${pod.metadata.namespace}/${name}`)
  }
  return found ?? none
}

function termsOf(pod: Frozen<Pod>, terms: readonly Frozen<PodAffinityTerm>[] | undefined): readonly AffinityTerm[] {
  return terms && terms.length > 0 ? terms.map((term) => compile(pod, term)) : none
}

function weightedTermsOf(pod: Frozen<Pod>, terms: readonly Frozen<WeightedPodAffinityTerm>[] | undefined): readonly WeightedAffinityTerm[] {
  return terms && terms.length > 0 ? terms.map(({ weight, podAffinityTerm }) => ({ weight, ...compile(pod, podAffinityTerm) })) : none
}

function compile(pod: Frozen<Pod>, term: Frozen<PodAffinityTerm>): AffinityTerm {
  const named = term.namespaces ?? none
  const own = named.length === 0 && !term.namespaceSelector
  return affinityTerm({
    topologyKey: term.topologyKey,
    selector: selectorOf(term.labelSelector),
    namespaces: new Set(own ? [pod.metadata.namespace ?? ''] : named),
    namespaceSelector: term.namespaceSelector ? selectorOf(term.namespaceSelector) : nothing,
  })
}

export function affinityTerm({ topologyKey, selector, namespaces, namespaceSelector }: Omit<AffinityTerm, 'text'>): AffinityTerm {
  const text = JSON.stringify([topologyKey, selectorText(selector), [...namespaces].sort(), selectorText(namespaceSelector)])
  return { topologyKey, selector, namespaces, namespaceSelector, text }
}

function selectorText(selector: Selector): string | null {
  return selector === nothing ? null : selector.toString()
}
