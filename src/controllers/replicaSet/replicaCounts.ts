/**
 * Counts the pods of a ReplicaSet (L3, pure): from a tally of pods that are alike, or from the pods themselves where ownership changes or time matters.
 * Upstream goes through all pods in each sync (pkg/controller/replicaset, v1.36), which for 20,000 replicas would be most of what their start costs.
 */
import type { ReplicaSet } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodActive, isPodAvailable, isPodReady, isPodTerminating } from '#api/helpers/pods'
import type { Selector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import type { Alike, Tallies } from '#client/cache/tally'
import { decide } from '../shared/claim.ts'
import { controllerUidOrOrphan } from '../shared/indexes.ts'

/** Groups are those of the controllerUid index. */
export const replicaTally = 'replicas'

/** Pods of a kind are the same to a ReplicaSet: in its decision whether they are its own, and in its counts. */
export const replicaTallies: Tallies<Pod> = {
  [replicaTally]: (pod) => ({ group: controllerUidOrOrphan(pod), kind: `${stateOf(pod)}${JSON.stringify(pod.metadata.labels ?? {})}` }),
}

function stateOf(pod: Frozen<Pod>): string {
  if (isPodActive(pod)) return isPodReady(pod) ? 'ready' : 'active'
  return isPodTerminating(pod) ? 'terminating' : 'ended'
}

export interface ReplicaCounts {
  readonly active: number
  readonly fullyLabeled: number
  readonly ready: number
  readonly available: number
  readonly terminating: number
}

export interface PodsInSight {
  readonly owned: Iterable<Alike<Pod>>
  readonly orphans: Iterable<Alike<Pod>>
}

/** Undefined where the tally does not tell: a pod is to be adopted or released, or pods become available by time. */
export function countsOfTally(set: Frozen<ReplicaSet>, selector: Selector, { owned, orphans }: PodsInSight): ReplicaCounts | undefined {
  if ((set.spec.minReadySeconds ?? 0) > 0) return undefined
  for (const { one } of orphans) if (isPodActive(one) && decide(one, set, selector) !== 'ignore') return undefined
  const counts = { active: 0, fullyLabeled: 0, ready: 0, available: 0, terminating: 0 }
  const isFullyLabeled = fullLabels(set)
  for (const { one, count } of owned) {
    if (isPodTerminating(one)) counts.terminating += count
    if (!isPodActive(one)) continue
    const decision = decide(one, set, selector)
    if (decision === 'ignore') continue
    if (decision !== 'keep') return undefined
    counts.active += count
    if (isFullyLabeled(one)) counts.fullyLabeled += count
    if (!isPodReady(one)) continue
    counts.ready += count
    counts.available += count
  }
  return counts
}

/** @param owned all pods that the set controls; `active` are those that count as its replicas */
export function countsOfPods(set: Frozen<ReplicaSet>, owned: readonly Frozen<Pod>[], active: readonly Frozen<Pod>[], nowMs: number): ReplicaCounts {
  const minReadySeconds = set.spec.minReadySeconds ?? 0
  return {
    active: active.length,
    fullyLabeled: active.filter(fullLabels(set)).length,
    ready: active.filter(isPodReady).length,
    available: active.filter((pod) => isPodAvailable(pod, minReadySeconds, nowMs)).length,
    terminating: owned.filter(isPodTerminating).length,
  }
}

/** Whether a pod has all labels of the set's template. */
function fullLabels(set: Frozen<ReplicaSet>): (pod: Frozen<Pod>) => boolean {
  const wanted = Object.entries(set.spec.template?.metadata?.labels ?? {})
  return ({ metadata }) => wanted.every(([key, value]) => ownValue(metadata.labels, key) === value)
}
