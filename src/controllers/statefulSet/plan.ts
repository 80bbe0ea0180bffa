/**
 * The next step of a StatefulSet (L3): which ordinals to create, which pods to remove. One at a time and in order, unless the set says
 * Parallel. Pure. Upstream: pkg/controller/statefulset/stateful_set_control.go (v1.36).
 */
import type { StatefulSet, StatefulSetStatus } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodAvailable, isPodReady, isPodTerminal, msUntilAvailable } from '#api/helpers/pods'
import { scaledValue } from '#api/machinery/intOrString'
import type { Frozen } from '#api/machinery/meta'
import { hasIdentity, maxOrdinal, ordinalOf, podRevisionLabel } from './pods.ts'

export interface Revisions {
  /** Names of ControllerRevisions. */
  readonly current: string
  readonly update: string
}

export interface StatefulPlan {
  /** Ordinal, and whether the pod is made from the update revision. */
  readonly create: { readonly ordinal: number; readonly updated: boolean }[]
  /** Pods to delete: ended ones and those of an old revision, which are then created again, and surplus ones. */
  readonly remove: Frozen<Pod>[]
  /** Pods that lack the labels of their place. */
  readonly mend: Frozen<Pod>[]
  readonly requeueAfterMs?: number | undefined
}

const revisionOf = (pod: Frozen<Pod>) => pod.metadata.labels?.[podRevisionLabel] ?? ''
const isTerminating = (pod: Frozen<Pod>) => pod.metadata.deletionTimestamp !== undefined
const firstOrdinal = (set: Frozen<StatefulSet>): number => set.spec.ordinals?.start ?? 0
const replicasOf = (set: Frozen<StatefulSet>) => set.spec.replicas ?? 1
/** The first ordinal beyond the set: no pod is made whose name ordinalOf does not read. */
const endOrdinal = (set: Frozen<StatefulSet>) => Math.min(firstOrdinal(set) + replicasOf(set), maxOrdinal + 1)

/** Pods that one sync creates at most; their events call for the next sync, which creates more. Upstream creates as many at a time. */
const maxCreationsPerSync = 500

/** The set's pods by ordinal: those it wants, lowest first, and those beyond, highest first. */
function arrange(set: Frozen<StatefulSet>, pods: readonly Frozen<Pod>[]) {
  const [start, end] = [firstOrdinal(set), endOrdinal(set)]
  const found: [number, Frozen<Pod>][] = []
  const condemned: { readonly ordinal: number; readonly pod: Frozen<Pod> }[] = []
  for (const pod of pods) {
    const ordinal = ordinalOf(set, pod)
    if (ordinal === undefined) continue
    if (ordinal >= start && ordinal < end) found.push([ordinal, pod])
    else condemned.push({ ordinal, pod })
  }
  const wanted = new Map(found.sort(([a], [b]) => a - b))
  return { wanted, condemned: condemned.sort((a, b) => b.ordinal - a.ordinal).map(({ pod }) => pod) }
}

/**
 * Ordinals that have no pod, lowest first, at most `limit`. The work grows with the pods that are there, not with spec.replicas.
 * @param present in ascending order
 */
function missingOrdinals(set: Frozen<StatefulSet>, present: Iterable<number>, limit: number): number[] {
  const missing: number[] = []
  let next = firstOrdinal(set)
  for (const ordinal of [...present, endOrdinal(set)]) {
    for (; next < ordinal && missing.length < limit; next++) missing.push(next)
    if (missing.length === limit) return missing
    next = ordinal + 1
  }
  return missing
}

/** Which revision a pod that is made now belongs to: below the partition of a rolling update, the one before. */
function isUpdated(set: Frozen<StatefulSet>, ordinal: number): boolean {
  const { type = 'RollingUpdate', rollingUpdate } = set.spec.updateStrategy ?? {}
  return type !== 'RollingUpdate' || ordinal >= firstOrdinal(set) + (rollingUpdate?.partition ?? 0)
}

export interface StatefulFeatures {
  /** An update may have several pods down at once. Upstream's gate MaxUnavailableStatefulSet, which is off in v1.36. */
  readonly maxUnavailable?: boolean | undefined
}

export function planStatefulSet(
  set: Frozen<StatefulSet>,
  pods: readonly Frozen<Pod>[],
  revisions: Revisions,
  nowMs: number,
  features: StatefulFeatures = {},
): StatefulPlan {
  const { wanted, condemned } = arrange(set, pods)
  const minReadySeconds = set.spec.minReadySeconds ?? 0
  const monotonic = (set.spec.podManagementPolicy ?? 'OrderedReady') === 'OrderedReady'
  const isHealthy = (pod: Frozen<Pod>) => pod.status?.phase === 'Running' && isPodAvailable(pod, minReadySeconds, nowMs) && !isTerminating(pod)
  const waits = (pod: Frozen<Pod>): StatefulPlan => ({
    ...plan,
    requeueAfterMs: minReadySeconds > 0 ? msUntilAvailable(pod, minReadySeconds, nowMs) || undefined : undefined,
  })
  const plan: { create: StatefulPlan['create']; remove: Frozen<Pod>[]; mend: Frozen<Pod>[] } = { create: [], remove: [], mend: [] }
  const missing = missingOrdinals(set, wanted.keys(), monotonic ? 1 : maxCreationsPerSync)
  const [firstMissing = Number.POSITIVE_INFINITY] = missing
  for (const [ordinal, pod] of wanted) {
    if (monotonic && ordinal > firstMissing) break
    if (isPodTerminal(pod) && !isTerminating(pod)) plan.remove.push(pod)
    else if (!monotonic || isHealthy(pod)) {
      if (!hasIdentity(set, pod)) plan.mend.push(pod)
      continue
    } else return waits(pod)
    if (monotonic) return plan
  }
  for (const ordinal of missing) plan.create.push({ ordinal, updated: isUpdated(set, ordinal) })
  if (monotonic && missing.length > 0) return plan
  const firstUnhealthy = [...wanted.values(), ...[...condemned].reverse()].find((pod) => !isHealthy(pod))
  for (const pod of condemned) {
    if (isTerminating(pod)) {
      if (monotonic) return plan
      continue
    }
    // An unhealthy pod with a higher ordinal may go; one that others wait for must recover first.
    if (monotonic && !isHealthy(pod) && pod !== firstUnhealthy) return waits(pod)
    plan.remove.push(pod)
    if (monotonic) return plan
  }
  if (plan.create.length + plan.remove.length > 0) return plan
  const planNext = features.maxUnavailable ? planUpdate : planUpdateOneByOne
  return planNext(set, wanted, revisions, isHealthy, waits, plan)
}

type UpdatePlanner = (
  set: Frozen<StatefulSet>,
  wanted: ReadonlyMap<number, Frozen<Pod>>,
  revisions: Revisions,
  isHealthy: (pod: Frozen<Pod>) => boolean,
  waits: (pod: Frozen<Pod>) => StatefulPlan,
  plan: StatefulPlan,
) => StatefulPlan

/** Highest ordinal first, whatever state it is in; the next only when all above are updated and healthy; none below the partition. */
const planUpdateOneByOne: UpdatePlanner = (set, wanted, revisions, isHealthy, waits, plan) => {
  if ((set.spec.updateStrategy?.type ?? 'RollingUpdate') !== 'RollingUpdate') return plan
  const last = firstOrdinal(set) + (set.spec.updateStrategy?.rollingUpdate?.partition ?? 0)
  for (const [ordinal, pod] of [...wanted].reverse()) {
    if (ordinal < last) break
    if (revisionOf(pod) !== revisions.update && !isTerminating(pod)) return { ...plan, remove: [pod] }
    if (!isHealthy(pod)) return waits(pod)
  }
  return plan
}

/** Highest ordinals first, as many as may be down at once, none below the partition. */
const planUpdate: UpdatePlanner = (set, wanted, revisions, isHealthy, waits, plan) => {
  const { type = 'RollingUpdate', rollingUpdate } = set.spec.updateStrategy ?? {}
  if (type !== 'RollingUpdate') return plan
  // Nothing is missing here: a plan that creates pods has returned before.
  const unavailable = [...wanted.values()].filter((pod) => !isHealthy(pod))
  const outdated = [...wanted]
    .filter(([ordinal]) => ordinal >= firstOrdinal(set) + (rollingUpdate?.partition ?? 0))
    .map(([, pod]) => pod)
    .filter((pod) => revisionOf(pod) !== revisions.update && !isTerminating(pod))
  const budget = maxUnavailable(set) - unavailable.length
  if (outdated.length > 0 && budget > 0) return { ...plan, remove: outdated.reverse().slice(0, budget) }
  const waitsFor = unavailable.at(-1)
  return waitsFor ? waits(waitsFor) : plan
}

/** How many pods an update may have down at once: a share is rounded down, but never to none. */
function maxUnavailable(set: Frozen<StatefulSet>): number {
  return Math.max(1, scaledValue(set.spec.updateStrategy?.rollingUpdate?.maxUnavailable ?? 1, replicasOf(set), false) ?? 1)
}

/** The set no longer has a place for the pod. */
export function isCondemned(set: Frozen<StatefulSet>, pod: Frozen<Pod>): boolean {
  const ordinal = ordinalOf(set, pod)
  return ordinal !== undefined && (ordinal < firstOrdinal(set) || ordinal >= endOrdinal(set))
}

/** The counts and revisions of a StatefulSet's status. */
export function statefulSetStatus(set: Frozen<StatefulSet>, pods: readonly Frozen<Pod>[], revisions: Revisions, nowMs: number): StatefulSetStatus {
  const mine = pods.filter((pod) => ordinalOf(set, pod) !== undefined)
  const count = (matches: (pod: Frozen<Pod>) => boolean) => mine.filter(matches).length
  const running = (pod: Frozen<Pod>) => pod.status?.phase === 'Running' && isPodReady(pod)
  const readyReplicas = count(running)
  const updatedReplicas = count((pod) => !isTerminating(pod) && revisionOf(pod) === revisions.update)
  const replicas = mine.length
  const done =
    [updatedReplicas, readyReplicas, replicas].every((number) => number === replicasOf(set)) &&
    (set.spec.updateStrategy?.type ?? 'RollingUpdate') === 'RollingUpdate'
  const currentReplicas = done ? updatedReplicas : count((pod) => !isTerminating(pod) && revisionOf(pod) === revisions.current)
  return {
    observedGeneration: set.metadata.generation,
    replicas,
    ...(readyReplicas > 0 ? { readyReplicas } : {}),
    ...(currentReplicas > 0 ? { currentReplicas } : {}),
    ...(updatedReplicas > 0 ? { updatedReplicas } : {}),
    availableReplicas: count((pod) => running(pod) && isPodAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs)),
    currentRevision: done ? revisions.update : revisions.current,
    updateRevision: revisions.update,
  }
}
