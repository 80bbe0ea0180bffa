/**
 * Explains the placement of a pod (L3): the last decision as it was kept, the result of every filter for every node now, and what would have to change.
 * A user requests it, so it may take a while; nothing is computed before a request.
 */
import type { NodeExplanation, PlacementExplanation, PluginReasons, SchedulingExplanation } from '#api/debug/scheduling'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { formatTime } from '#base/time'
import type { DecisionLog, PlacedDecision } from '../decisions.ts'
import type { NodeInfo } from '../framework/nodeInfo.ts'
import { type PodInfo, podInfo } from '../framework/podInfo.ts'
import type { Profile } from '../framework/profile.ts'
import type { Snapshot } from '../framework/snapshot.ts'
import type { Nominator } from '../nominator.ts'
import type { SchedulerCache } from '../schedulerCache.ts'
import type { Place, SchedulingQueue } from '../schedulingQueue.ts'
import { type Change, changesFor, type Draft } from './changes.ts'
import { type Trial, tryPod } from './trial.ts'

export interface ExplainerParts {
  readonly cache: SchedulerCache
  readonly queue: SchedulingQueue
  readonly nominator: Nominator
  readonly profiles: ReadonlyMap<string, Profile>
  readonly decisions: DecisionLog
}

export interface Explainer {
  /** For a scheduler that begins; the result ends it. */
  attach(parts: ExplainerParts): () => void
  /** 'unknown': the scheduler does not know the pod. Undefined: no scheduler runs. */
  explain(namespace: string, name: string): SchedulingExplanation | 'unknown' | undefined
  /** For a pod that does not exist: the nodes where it would fit now. Undefined: no scheduler runs. */
  consider(pod: Frozen<Pod>): SchedulingExplanation | undefined
}

const nodeLimit = 100

const places: Readonly<Record<Place, SchedulingExplanation['state']>> = {
  active: 'Active',
  backoff: 'BackOff',
  unschedulable: 'Unschedulable',
  gated: 'Gated',
  inFlight: 'InFlight',
}

export function createExplainer(): Explainer {
  let parts: ExplainerParts | undefined
  return {
    attach: (given) => {
      parts = given
      return () => {
        if (parts === given) parts = undefined
      }
    },
    explain: (namespace, name) => parts && (explainPod(parts, namespace, name) ?? 'unknown'),
    consider: (pod) => parts && considerPod(parts, pod),
  }
}

/** Tries the pod on the current state, without changing it. */
export function considerPod({ cache, profiles }: ExplainerParts, pod: Frozen<Pod>): SchedulingExplanation {
  const scheduler = pod.spec.schedulerName ?? 'default-scheduler'
  const profile = profiles.get(scheduler)
  const gates = (pod.spec.schedulingGates ?? []).map((gate) => gate.name)
  const gatedBy = profile?.points.preEnqueue.find((plugin) => plugin.preEnqueue(pod))?.name
  const matrix = profile
    ? matrixOf(profile, { info: podInfo(pod), place: undefined, placedOn: undefined }, cache)
    : { beforehand: [{ plugin: scheduler, reasons: ['no scheduler of this name runs here'] }], filters: [], nodes: [] }
  return {
    pod: { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name ?? '', uid: '' },
    scheduler,
    state: 'Absent',
    schedulingGates: gates,
    ...(gatedBy === undefined ? {} : { gatedBy }),
    waitsFor: [],
    attempts: 0,
    ...matrix,
    nodeCount: cache.nodes.length,
  }
}

interface Known {
  readonly info: PodInfo
  readonly place: Place | undefined
  readonly placedOn: { readonly node: string; readonly assumed: boolean } | undefined
}

/** @returns undefined for a pod that the scheduler does not know */
export function explainPod(parts: ExplainerParts, namespace: string, name: string): SchedulingExplanation | undefined {
  const { cache, queue, nominator, profiles, decisions } = parts
  const key = `${namespace}/${name}`
  const known = find(cache, queue, key)
  if (!known) return undefined
  const { pod } = known.info
  const scheduler = pod.spec.schedulerName ?? 'default-scheduler'
  const kept = decisions.of(pod.metadata.uid ?? '')
  const queued = queue.get(key)?.queued
  const profile = profiles.get(scheduler)
  const placedOn = known.placedOn?.node
  const nominated = nominator.isEmpty ? undefined : cache.nodes.find((node) => nominator.on(node.name).some((one) => one.key === key))?.name
  const matrix = profile ? matrixOf(profile, known, cache) : { beforehand: [], filters: [], nodes: [] }
  return {
    pod: { namespace, name, uid: pod.metadata.uid ?? '' },
    scheduler,
    state: known.placedOn ? (known.placedOn.assumed ? 'Binding' : 'Scheduled') : places[known.place ?? 'active'],
    ...(placedOn === undefined ? {} : { node: placedOn }),
    schedulingGates: (pod.spec.schedulingGates ?? []).map((gate) => gate.name),
    ...(queued?.gatedBy === undefined ? {} : { gatedBy: queued.gatedBy }),
    waitsFor: [...(queued?.refusedBy ?? []), ...(queued?.pendingOn ?? [])],
    attempts: kept?.attempts ?? queued?.attempts ?? 0,
    ...(nominated === undefined ? {} : { nominatedNode: nominated }),
    ...(kept?.refused ? { lastRefusal: { at: formatTime(kept.refused.atMs), message: kept.refused.message } } : {}),
    ...(kept?.placed && kept.placed.nodeName === placedOn ? { placement: placementOf(kept.placed, profile) } : {}),
    ...matrix,
    nodeCount: cache.nodes.length,
  }
}

function find(cache: SchedulerCache, queue: SchedulingQueue, key: string): Known | undefined {
  const placed = cache.placementOf(key)
  if (placed) return { info: placed.info, place: undefined, placedOn: placed }
  const waiting = queue.get(key)
  return waiting && { info: podInfo(waiting.queued.pod), place: waiting.place, placedOn: undefined }
}

function placementOf({ atMs, evaluatedNodes, feasibleNodes, scores }: PlacedDecision, profile: Profile | undefined): PlacementExplanation {
  const weights = new Map(profile?.points.score.map(({ name }, index) => [name, profile.weights[index] ?? 1]))
  const weighted = scores.map(({ plugin, score }) => ({ plugin, weight: weights.get(plugin) ?? 1, score }))
  return { at: formatTime(atMs), evaluatedNodes, feasibleNodes, scores: weighted }
}

/** The pod is asked about as if it had no node yet. */
function matrixOf(profile: Profile, { info, placedOn }: Known, cache: SchedulerCache): Pick<SchedulingExplanation, 'beforehand' | 'filters' | 'nodes'> {
  const { nodeName: _, ...spec } = info.pod.spec
  const pod: PodInfo = placedOn ? { ...info, pod: { ...info.pod, spec } } : info
  const self = placedOn ? { info, nodeName: placedOn.node } : undefined
  const trial = tryPod(profile, pod, cache, self)
  const found = cache.nodes.map((node) => explainNode(profile, pod, node, trial, cache, placedOn !== undefined))
  const effort = ({ fits, changes, refusals }: NodeExplanation) => (fits ? 0 : changes ? changes.length : 1000 + refusals.length)
  found.sort((a, b) => Number(b.node === placedOn?.node) - Number(a.node === placedOn?.node) || effort(a) - effort(b))
  return { beforehand: trial.beforehand, filters: trial.filters, nodes: found.slice(0, nodeLimit) }
}

function explainNode(profile: Profile, pod: PodInfo, node: NodeInfo, trial: Trial, cache: SchedulerCache, isPlaced: boolean): NodeExplanation {
  const refusals = trial.refusalsOf(node)
  const fits = refusals.length === 0 && trial.beforehand.length === 0
  const changes = fits || isPlaced ? undefined : smallestChanges(profile, pod, node, refusals, cache)
  const described = changes?.map(({ plugin, of, text }) => ({ plugin, of, text }))
  return { node: node.name, fits, refusals, ...(described ? { changes: described } : {}) }
}

/** Undefined where some plugin cannot be satisfied by them, also where all of them together were not enough when tried. */
function smallestChanges(
  profile: Profile,
  pod: PodInfo,
  node: NodeInfo,
  refusals: readonly PluginReasons[],
  cache: SchedulerCache,
): readonly Change[] | undefined {
  const changes: Change[] = []
  for (const { plugin } of refusals) {
    const known = changesFor(plugin, pod, node)
    if (!known) return undefined
    changes.push(...known)
  }
  if (changes.length === 0) return undefined
  const draft: Draft = { pod, node: node.clone() }
  for (const change of changes) change.apply(draft)
  const trial = tryPod(profile, draft.pod, withNode(cache, draft.node))
  return trial.beforehand.length === 0 && trial.refusalsOf(draft.node).length === 0 ? changes : undefined
}

function withNode(snapshot: Snapshot, changed: NodeInfo): Snapshot {
  return {
    nodes: snapshot.nodes.map((node) => (node.name === changed.name ? changed : node)),
    get: (name) => (name === changed.name ? changed : snapshot.get(name)),
    imageNodes: (name) => snapshot.imageNodes(name),
    nodesWithAffinityPods: snapshot.nodesWithAffinityPods,
    nodesWithRequiredAntiAffinityPods: snapshot.nodesWithRequiredAntiAffinityPods,
    isPvcUsed: (key) => snapshot.isPvcUsed(key),
  }
}

/** `namespace/name`, or a name in `default`. */
export function parsePodName(text: string): { readonly namespace: string; readonly name: string } {
  const slash = text.indexOf('/')
  return slash < 0 ? { namespace: 'default', name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}
