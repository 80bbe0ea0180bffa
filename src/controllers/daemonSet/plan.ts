/**
 * Plans the pods of a DaemonSet: eligible nodes, pods to create and to delete (L3). Pure. Upstream: pkg/controller/daemon (v1.36).
 */
import type { DaemonSet, DaemonSetStatus } from '#api/gen/types/apps.v1'
import type { Node, Pod } from '#api/gen/types/core.v1'
import { daemonTolerations } from '#api/helpers/daemonTolerations'
import { podMatchesNodeSelectorAndAffinity } from '#api/helpers/nodes'
import { isPodAvailable, isPodReady, isPodTerminal, msUntilAvailable } from '#api/helpers/pods'
import { findUntoleratedTaint } from '#api/helpers/taints'
import { scaledValue } from '#api/machinery/intOrString'
import type { Frozen } from '#api/machinery/meta'
import { append, least } from '#base/extremes'
import type { NewObject } from '#client/client'
import { podFromTemplate } from '../shared/podControl.ts'

export const revisionHashLabel = 'controller-revision-hash'
const templateGenerationLabel = 'pod-template-generation'

/** The pod for one node: bound to it by affinity, so that the scheduler still decides, with the tolerations of daemons. */
export function daemonPod(set: Frozen<DaemonSet>, nodeName: string, hash: string): NewObject<Pod> {
  const pod = podFromTemplate(set.spec.template, set)
  const generation = set.metadata.annotations?.['deprecated.daemonset.template.generation']
  pod.metadata.labels = { ...pod.metadata.labels, [revisionHashLabel]: hash, ...(generation ? { [templateGenerationLabel]: generation } : {}) }
  const spec = pod.spec
  const field = { key: 'metadata.name', operator: 'In', values: [nodeName] }
  spec.affinity = {
    ...spec.affinity,
    nodeAffinity: {
      ...spec.affinity?.nodeAffinity,
      // The other terms were checked when the node was selected.
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [field] }] },
    },
  }
  spec.tolerations = daemonTolerations(spec.tolerations, spec.hostNetwork === true)
  return pod
}

/** `run`: a pod belongs here. `keep`: one that is here may stay. */
export function nodeShouldRun(set: Frozen<DaemonSet>, node: Frozen<Node>): { run: boolean; keep: boolean } {
  const { spec } = set.spec.template
  if (!spec) return { run: false, keep: false }
  const pod: Frozen<Pod> = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: set.metadata.namespace }, spec, status: {} } as Frozen<Pod>
  if ((spec.nodeName && spec.nodeName !== node.metadata.name) || !podMatchesNodeSelectorAndAffinity(pod, node)) return { run: false, keep: false }
  const tolerations = daemonTolerations(spec.tolerations, spec.hostNetwork === true)
  const refuses = (...effects: string[]) => findUntoleratedTaint(node.spec.taints, tolerations, ({ effect }) => effects.includes(effect)) !== undefined
  if (refuses('NoSchedule', 'NoExecute')) return { run: false, keep: !refuses('NoExecute') }
  return { run: true, keep: true }
}

/** The node that a daemon pod is for, also while it is not scheduled. */
export function targetNode(pod: Frozen<Pod>): string {
  if (pod.spec.nodeName) return pod.spec.nodeName
  for (const term of pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []) {
    for (const { key, operator, values } of term.matchFields ?? [])
      if (key === 'metadata.name' && operator === 'In' && values?.length === 1) return values[0] ?? ''
  }
  return ''
}

export interface DaemonPlan {
  readonly createOn: string[]
  readonly remove: Frozen<Pod>[]
  /** Pods that failed or succeeded and are replaced, with an event. */
  readonly ended: { readonly pod: Frozen<Pod>; readonly node: string }[]
}

export type PodsByNode = ReadonlyMap<string, readonly Frozen<Pod>[]>

/** Plans the missing and surplus pods of each node, without updates. */
export function planPlacement(set: Frozen<DaemonSet>, nodes: readonly Frozen<Node>[], byNode: PodsByNode, hash: string, nowMs: number): DaemonPlan {
  const plan: DaemonPlan = { createOn: [], remove: [], ended: [] }
  const allowsSurge = rollingLimits(set, 1).maxSurge > 0
  for (const node of nodes) {
    const { name = '' } = node.metadata
    const pods = byNode.get(name) ?? []
    const { run, keep } = nodeShouldRun(set, node)
    if (run && pods.length === 0) plan.createOn.push(name)
    else if (keep) {
      const present = pods.filter(({ metadata }) => !metadata.deletionTimestamp)
      append(
        plan.ended,
        present.filter(isPodTerminal).map((pod) => ({ pod, node: name })),
      )
      const running = present.filter((pod) => !isPodTerminal(pod)).sort(scheduledOldestFirst)
      append(plan.remove, allowsSurge ? beyondSurge(set, running, hash, nowMs) : running.slice(1))
    } else
      append(
        plan.remove,
        pods.filter(({ metadata }) => !metadata.deletionTimestamp),
      )
  }
  const known = new Set(nodes.map(({ metadata }) => metadata.name))
  for (const [name, pods] of byNode)
    if (!known.has(name))
      append(
        plan.remove,
        pods.filter((pod) => !pod.metadata.deletionTimestamp && !pod.spec.nodeName),
      )
  return plan
}

/** During a surge a node keeps the oldest pod of the old and of the new template, until the new one is available or the old one is not ready. */
function beyondSurge(set: Frozen<DaemonSet>, running: readonly Frozen<Pod>[], hash: string, nowMs: number): Frozen<Pod>[] {
  const fresh = running.find((pod) => isOfHash(pod, hash))
  const old = running.find((pod) => !isOfHash(pod, hash))
  const isOver = old && fresh && (!isPodReady(old) || isPodAvailable(fresh, set.spec.minReadySeconds ?? 0, nowMs))
  return running.filter((pod) => (pod === old ? isOver : pod !== fresh))
}

const isOfHash = (pod: Frozen<Pod>, hash: string): boolean => pod.metadata.labels?.[revisionHashLabel] === hash

function scheduledOldestFirst(a: Frozen<Pod>, b: Frozen<Pod>): number {
  const assigned = Number(Boolean(b.spec.nodeName)) - Number(Boolean(a.spec.nodeName))
  const [since, other] = [a, b].map(({ metadata: { creationTimestamp = '', name = '' } }) => `${creationTimestamp} ${name}`) as [string, string]
  return assigned || (since < other ? -1 : 1)
}

function rollingLimits(set: Frozen<DaemonSet>, desired: number): { maxSurge: number; maxUnavailable: number } {
  const { type = 'RollingUpdate', rollingUpdate } = set.spec.updateStrategy ?? {}
  if (type !== 'RollingUpdate') return { maxSurge: 0, maxUnavailable: 0 }
  const maxSurge = scaledValue(rollingUpdate?.maxSurge ?? 0, desired, true) ?? 0
  const maxUnavailable = scaledValue(rollingUpdate?.maxUnavailable ?? 1, desired, true) ?? 0
  return { maxSurge, maxUnavailable: maxSurge === 0 && maxUnavailable === 0 ? 1 : maxUnavailable }
}

/** The next step of a rolling update: old pods to remove, and nodes that get a second, new pod first. */
export function planUpdate(
  set: Frozen<DaemonSet>,
  nodes: readonly Frozen<Node>[],
  byNode: PodsByNode,
  hash: string,
  nowMs: number,
): { createOn: string[]; remove: Frozen<Pod>[] } {
  const wanted = nodes.filter((node) => nodeShouldRun(set, node).run).map(({ metadata }) => metadata.name ?? '')
  const { maxSurge, maxUnavailable } = rollingLimits(set, wanted.length)
  const minReadySeconds = set.spec.minReadySeconds ?? 0
  const available = (pod: Frozen<Pod>) => isPodAvailable(pod, minReadySeconds, nowMs) && !pod.metadata.deletionTimestamp
  const remove: Frozen<Pod>[] = []
  const createOn: string[] = []
  let unavailable = 0
  let surging = 0
  const candidates: Frozen<Pod>[] = []
  const surgeCandidates: string[] = []
  for (const name of wanted) {
    const pods = (byNode.get(name) ?? []).filter(({ metadata }) => !metadata.deletionTimestamp)
    const old = pods.find((pod) => !isOfHash(pod, hash))
    const fresh = pods.find((pod) => isOfHash(pod, hash))
    if (maxSurge > 0) {
      if (old && fresh && available(fresh)) remove.push(old)
      else if (old && fresh) surging++
      // An additional pod next to an unavailable one does not count against maxSurge.
      else if (old) (available(old) ? surgeCandidates : createOn).push(name)
      continue
    }
    if (!old) unavailable += fresh && available(fresh) ? 0 : 1
    else if (available(old)) candidates.push(old)
    else {
      // It does not serve anyway: replacing it costs nothing.
      unavailable++
      remove.push(old)
    }
  }
  if (maxSurge > 0) append(createOn, surgeCandidates.slice(0, Math.max(0, maxSurge - surging)))
  else append(remove, candidates.slice(0, Math.max(0, maxUnavailable - unavailable)))
  return { createOn, remove }
}

/** The counts of a DaemonSet's status, from the oldest pod on each node that should run one. */
export function daemonSetStatus(set: Frozen<DaemonSet>, nodes: readonly Frozen<Node>[], byNode: PodsByNode, hash: string, nowMs: number): DaemonSetStatus {
  const status = { desiredNumberScheduled: 0, currentNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0, updatedNumberScheduled: 0, numberAvailable: 0 }
  for (const node of nodes) {
    const [pod] = [...(byNode.get(node.metadata.name ?? '') ?? [])].sort(scheduledOldestFirst)
    if (!nodeShouldRun(set, node).run) {
      if (pod) status.numberMisscheduled++
      continue
    }
    status.desiredNumberScheduled++
    if (!pod) continue
    status.currentNumberScheduled++
    if (isPodReady(pod)) status.numberReady++
    if (isPodAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs)) status.numberAvailable++
    if (isOfHash(pod, hash)) status.updatedNumberScheduled++
  }
  const { updatedNumberScheduled, numberAvailable, ...always } = status
  const numberUnavailable = status.desiredNumberScheduled - numberAvailable
  const { collisionCount } = set.status ?? {}
  return {
    ...always,
    observedGeneration: set.metadata.generation,
    ...(updatedNumberScheduled > 0 ? { updatedNumberScheduled } : {}),
    ...(numberAvailable > 0 ? { numberAvailable } : {}),
    ...(numberUnavailable > 0 ? { numberUnavailable } : {}),
    ...(collisionCount === undefined ? {} : { collisionCount }),
  }
}

/** Milliseconds until the next ready pod counts as available. */
export function msUntilNextAvailable(set: Frozen<DaemonSet>, byNode: PodsByNode, nowMs: number): number | undefined {
  const { minReadySeconds = 0 } = set.spec
  const waits = minReadySeconds === 0 ? [] : [...byNode.values()].flat().flatMap((pod) => msUntilAvailable(pod, minReadySeconds, nowMs) || [])
  return waits.length === 0 ? undefined : least(waits)
}
