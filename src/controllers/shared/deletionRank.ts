/**
 * Which pods go first when there are too many (L3): those whose loss hurts least. Pure.
 * Upstream: pkg/controller/controller_utils.go, ActivePodsWithRanks (v1.36).
 */

import type { Pod } from '#api/gen/types/core.v1'
import { isPodReady, podCondition } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import { greatest } from '#base/extremes'
import { parseTime } from '#base/time'

const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost'
const phaseOrder: Readonly<Record<string, number>> = bareMap({ Pending: 0, Unknown: 1, Running: 2 })

/**
 * The `count` pods of `pods` to delete first.
 * @param related pods of the same workload on any node: a node that has several of them loses one first.
 */
export function podsToDelete(pods: readonly Frozen<Pod>[], related: readonly Frozen<Pod>[], count: number, nowMs: number): Frozen<Pod>[] {
  // Nearly every sync has nothing to delete.
  if (count <= 0) return []
  if (count >= pods.length) return [...pods]
  const perNode = new Map<string, number>()
  for (const pod of related) {
    if (pod.spec.nodeName && pod.status?.phase !== 'Failed' && pod.status?.phase !== 'Succeeded' && !pod.metadata.deletionTimestamp) {
      perNode.set(pod.spec.nodeName, (perNode.get(pod.spec.nodeName) ?? 0) + 1)
    }
  }
  const rank = (pod: Frozen<Pod>) => perNode.get(pod.spec.nodeName ?? '') ?? 0
  return [...pods].sort((a, b) => compareForDeletion(a, b, rank, nowMs)).slice(0, count)
}

/** How old the ready ones of `chosen` are, as multiples of the age of the youngest ready pod: 0 and 1 when the choice is good. */
export function deletionAgeRatios(pods: readonly Frozen<Pod>[], chosen: readonly Frozen<Pod>[], nowMs: number): number[] {
  const age = ({ metadata }: Frozen<Pod>) => nowMs - (parseTime(metadata.creationTimestamp ?? '') ?? 0)
  const youngest = pods.filter(isPodReady).reduce((least, pod) => Math.min(least, age(pod)), Number.POSITIVE_INFINITY)
  return youngest > 0 ? chosen.filter(isPodReady).map((pod) => Math.floor(age(pod) / youngest)) : []
}

function compareForDeletion(a: Frozen<Pod>, b: Frozen<Pod>, rank: (pod: Frozen<Pod>) => number, nowMs: number): number {
  const assigned = Number(Boolean(a.spec.nodeName)) - Number(Boolean(b.spec.nodeName))
  if (assigned !== 0) return assigned
  const phase = (phaseOrder[a.status?.phase ?? ''] ?? 0) - (phaseOrder[b.status?.phase ?? ''] ?? 0)
  if (phase !== 0) return phase
  const ready = Number(isPodReady(a)) - Number(isPodReady(b))
  if (ready !== 0) return ready
  const cost = deletionCost(a) - deletionCost(b)
  if (cost !== 0) return cost
  if (rank(a) !== rank(b)) return rank(b) - rank(a)
  const byReady = isPodReady(a) && isPodReady(b) ? byAge(a, b, readySince(a), readySince(b), nowMs) : 0
  if (byReady !== 0) return byReady
  const restarts = byRestarts(a, b)
  if (restarts !== 0) return restarts
  return byAge(a, b, parseTime(a.metadata.creationTimestamp ?? ''), parseTime(b.metadata.creationTimestamp ?? ''), nowMs)
}

/** Younger first, but only by orders of magnitude, so that old pods are not always the ones that stay. */
function byAge(a: Frozen<Pod>, b: Frozen<Pod>, aMs: number | undefined, bMs: number | undefined, nowMs: number): number {
  if (aMs === bMs) return 0
  if (aMs === undefined || bMs === undefined) return aMs === undefined ? -1 : 1
  const magnitude = (sinceMs: number) => (nowMs - sinceMs <= 0 ? -1 : Math.floor(Math.log2((nowMs - sinceMs) * 1e6)))
  const difference = magnitude(aMs) - magnitude(bMs)
  if (difference !== 0) return difference
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1
}

function readySince(pod: Frozen<Pod>): number | undefined {
  return parseTime(podCondition(pod, 'Ready')?.lastTransitionTime ?? '')
}

function deletionCost(pod: Frozen<Pod>): number {
  const text = pod.metadata.annotations?.[deletionCostAnnotation]
  // As validated: no plus, no leading zeros, 32 bits.
  const cost = text !== undefined && /^(?:0|[1-9]\d*|-\d+)$/.test(text) ? Number(text) : 0
  return Math.abs(cost) <= 0x7f_ff_ff_ff ? cost : 0
}

function byRestarts(a: Frozen<Pod>, b: Frozen<Pod>): number {
  const most = (pod: Frozen<Pod>, sidecars: boolean) => {
    const restartable = new Set((pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name))
    const statuses = sidecars ? pod.status?.initContainerStatuses?.filter(({ name }) => restartable.has(name)) : pod.status?.containerStatuses
    return greatest(
      (statuses ?? []).map(({ restartCount }) => restartCount),
      0,
    )
  }
  return most(b, false) - most(a, false) || most(b, true) - most(a, true)
}
