/**
 * Plans the missing pods of a ReplicaSet and its status (L3). Pure. Upstream: pkg/controller/replicaset (v1.36).
 */
import type { ReplicaSet, ReplicaSetCondition, ReplicaSetStatus } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodAvailable, isPodReady, msUntilAvailable } from '#api/helpers/pods'
import { findCondition, withoutCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { least } from '#base/extremes'
import { formatTime } from '#base/time'
import { podsToDelete } from '../shared/deletionRank.ts'

/** At most this many creations or deletions in one sync. */
const burstReplicas = 500

export interface ReplicaPlan {
  readonly create: number
  readonly remove: readonly Frozen<Pod>[]
}

/** @param related asked only where some must go: the pods of all that share the set's controller */
export function planReplicas(
  replicaSet: Frozen<ReplicaSet>,
  active: readonly Frozen<Pod>[],
  related: () => readonly Frozen<Pod>[],
  nowMs: number,
): ReplicaPlan {
  const difference = active.length - (replicaSet.spec.replicas ?? 1)
  if (difference < 0) return { create: Math.min(-difference, burstReplicas), remove: [] }
  if (difference === 0) return { create: 0, remove: [] }
  return { create: 0, remove: podsToDelete(active, related(), Math.min(difference, burstReplicas), nowMs) }
}

/** The counts and conditions of a ReplicaSet's status. */
export function replicaSetStatus(
  replicaSet: Frozen<ReplicaSet>,
  active: readonly Frozen<Pod>[],
  terminating: number,
  failure: string | undefined,
  nowMs: number,
): ReplicaSetStatus {
  const wanted = Object.entries(replicaSet.spec.template?.metadata?.labels ?? {})
  const minReadySeconds = replicaSet.spec.minReadySeconds ?? 0
  return {
    replicas: active.length,
    ...ifAny('fullyLabeledReplicas', active.filter((pod) => wanted.every(([key, value]) => ownValue(pod.metadata.labels, key) === value)).length),
    ...ifAny('readyReplicas', active.filter(isPodReady).length),
    ...ifAny('availableReplicas', active.filter((pod) => isPodAvailable(pod, minReadySeconds, nowMs)).length),
    terminatingReplicas: terminating,
    observedGeneration: replicaSet.metadata.generation,
    ...conditions(replicaSet, active.length, failure, nowMs),
  }
}

/** Go leaves zero counts out. */
const ifAny = <K extends string>(name: K, count: number) => (count > 0 ? ({ [name]: count } as Record<K, number>) : {})

function conditions(replicaSet: Frozen<ReplicaSet>, active: number, failure: string | undefined, nowMs: number): { conditions?: ReplicaSetCondition[] } {
  const before = (replicaSet.status?.conditions ?? []) as readonly ReplicaSetCondition[]
  const there = findCondition(before, 'ReplicaFailure')
  let after: readonly ReplicaSetCondition[] = before
  if (failure === undefined) after = withoutCondition(before, 'ReplicaFailure')
  else if (!there) {
    const reason = active < (replicaSet.spec.replicas ?? 1) ? 'FailedCreate' : 'FailedDelete'
    after = [...before, { type: 'ReplicaFailure', status: 'True', reason, message: failure, lastTransitionTime: formatTime(nowMs) }]
  }
  return after.length > 0 ? { conditions: [...after] } : {}
}

/** When the next pod that is ready now will count as available. */
export function msUntilNextAvailable(replicaSet: Frozen<ReplicaSet>, active: readonly Frozen<Pod>[], nowMs: number): number | undefined {
  const minReadySeconds = replicaSet.spec.minReadySeconds ?? 0
  if (minReadySeconds === 0) return undefined
  const waits = active.flatMap((pod) => msUntilAvailable(pod, minReadySeconds, nowMs) ?? []).filter((ms) => ms > 0)
  return waits.length === 0 ? undefined : least(waits)
}
