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
import { append } from '#base/extremes'
import { hasMoreMembers } from '#base/members'

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

/** Members, items and values of an affinity that take some ten milliseconds to compile. */
const largeAffinity = 4000

/** Whether compiling the pod's affinity takes so long that it is done in several turns of the event loop. */
export function hasLargeAffinity({ spec: { affinity } }: Frozen<Pod>): boolean {
  return affinity !== undefined && hasMoreMembers(affinity, largeAffinity)
}

/** @param terms of the pod's affinity, where they are compiled already */
export function podInfo(pod: Frozen<Pod>, terms: AffinityTerms = compiledTerms(pod)): PodInfo {
  const { requiredAffinity, requiredAntiAffinity, preferredAffinity, preferredAntiAffinity } = terms
  const requests = podRequests(pod, { useStatusResources: true })
  const nonZero = asksForAll(pod) ? requests : podRequests(pod, { useStatusResources: true, missingRequests })
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
    requiredAffinity,
    requiredAntiAffinity,
    preferredAffinity,
    preferredAntiAffinity,
  }
}

export type AffinityTerms = Pick<PodInfo, 'requiredAffinity' | 'requiredAntiAffinity' | 'preferredAffinity' | 'preferredAntiAffinity'>

const noTerms: AffinityTerms = { requiredAffinity: [], requiredAntiAffinity: [], preferredAffinity: [], preferredAntiAffinity: [] }

function compiledTerms(pod: Frozen<Pod>): AffinityTerms {
  if (!pod.spec.affinity) return noTerms
  const steps = termsInSteps(pod)
  let step = steps.next()
  while (!step.done) step = steps.next()
  return step.value
}

/** Terms that are compiled before others get a turn. */
const termsPerTurn = 1000

/** Compiles the pod's affinity; pauses where it is large. */
export function* termsInSteps(pod: Frozen<Pod>): Generator<undefined, AffinityTerms> {
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {}
  return {
    requiredAffinity: yield* inSteps(podAffinity?.requiredDuringSchedulingIgnoredDuringExecution, (some) => termsOf(pod, some)),
    requiredAntiAffinity: yield* inSteps(podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution, (some) => termsOf(pod, some)),
    preferredAffinity: yield* inSteps(podAffinity?.preferredDuringSchedulingIgnoredDuringExecution, (some) => weightedTermsOf(pod, some)),
    preferredAntiAffinity: yield* inSteps(podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution, (some) => weightedTermsOf(pod, some)),
  }
}

function* inSteps<T, Compiled>(terms: readonly T[] = none, compile: (some: readonly T[]) => readonly Compiled[]): Generator<undefined, readonly Compiled[]> {
  if (terms.length <= termsPerTurn) return compile(terms)
  const all: Compiled[] = []
  for (let at = 0; at < terms.length; at += termsPerTurn) {
    append(all, compile(terms.slice(at, at + termsPerTurn)))
    yield
  }
  return all
}

/** Whether the terms of one are those of the other, compiled once. */
export function hasSameTerms(a: AffinityTerms, b: AffinityTerms): boolean {
  return (
    a.requiredAffinity === b.requiredAffinity &&
    a.requiredAntiAffinity === b.requiredAntiAffinity &&
    a.preferredAffinity === b.preferredAffinity &&
    a.preferredAntiAffinity === b.preferredAntiAffinity
  )
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

/** Compares label by label. */
export function sameLabels(a: LabelMap | undefined, b: LabelMap | undefined): boolean {
  if (a === b) return true
  const names = Object.keys(a ?? {})
  return names.length === Object.keys(b ?? {}).length && names.every((name) => a?.[name] === b?.[name])
}

/** Resources that the kubelet has allocated, which count during a resize. */
function allocated(status: Frozen<Pod>['status']): string {
  let text = ''
  for (const statuses of [status?.containerStatuses, status?.initContainerStatuses])
    for (const { resources, allocatedResources } of statuses ?? none)
      if (resources || allocatedResources) text += JSON.stringify([resources?.requests, allocatedResources])
  return text
}

/** Whether the term selects the pod. `namespaceLabels`: labels of the pod's namespace. */
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
  return terms && terms.length > 0 ? terms.map(compilerFor(pod)) : none
}

function weightedTermsOf(pod: Frozen<Pod>, terms: readonly Frozen<WeightedPodAffinityTerm>[] | undefined): readonly WeightedAffinityTerm[] {
  if (!terms || terms.length === 0) return none
  const compile = compilerFor(pod)
  return terms.map(({ weight, podAffinityTerm }) => Object.assign(compile(podAffinityTerm), { weight }))
}

/** The terms of a pod that name no namespaces share the set of its own: a pod may have tens of thousands. */
function compilerFor(pod: Frozen<Pod>): (term: Frozen<PodAffinityTerm>) => CompiledTerm {
  const own: ReadonlySet<string> = new Set([pod.metadata.namespace ?? ''])
  return ({ topologyKey, labelSelector, namespaceSelector, namespaces = none }) => {
    const isOwn = namespaces.length === 0 && !namespaceSelector
    const selectorOfNamespaces = namespaceSelector ? selectorOf(namespaceSelector) : nothing
    return new CompiledTerm(topologyKey, selectorOf(labelSelector), isOwn ? own : new Set(namespaces), selectorOfNamespaces)
  }
}

/** Its text is made when a pod with the term is placed or looked for. */
class CompiledTerm implements AffinityTerm {
  readonly topologyKey: string
  readonly selector: Selector
  readonly namespaces: ReadonlySet<string>
  readonly namespaceSelector: Selector
  #text: string | undefined

  constructor(topologyKey: string, selector: Selector, namespaces: ReadonlySet<string>, namespaceSelector: Selector) {
    this.topologyKey = topologyKey
    this.selector = selector
    this.namespaces = namespaces
    this.namespaceSelector = namespaceSelector
  }

  get text(): string {
    this.#text ??= JSON.stringify([this.topologyKey, selectorText(this.selector), [...this.namespaces].sort(), selectorText(this.namespaceSelector)])
    return this.#text
  }
}

export function affinityTerm({ topologyKey, selector, namespaces, namespaceSelector }: Omit<AffinityTerm, 'text'>): AffinityTerm {
  return new CompiledTerm(topologyKey, selector, namespaces, namespaceSelector)
}

function selectorText(selector: Selector): string | null {
  return selector === nothing ? null : selector.toString()
}
