/**
 * Plans the missing pods of a ReplicaSet and its status (L3). Pure. Upstream: pkg/controller/replicaset (v1.36).
 */
import type { ReplicaSet, ReplicaSetCondition, ReplicaSetStatus } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { msUntilAvailable } from '#api/helpers/pods'
import { findCondition, withoutCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { least } from '#base/extremes'
import { formatTime } from '#base/time'
import { podsToDelete } from '../shared/deletionRank.ts'
import type { ReplicaCounts } from './replicaCounts.ts'

/** At most this many creations or deletions in one sync. */
const burstReplicas = 500

export interface ReplicaPlan {
  readonly create: number
  readonly remove: readonly Frozen<Pod>[]
}

export interface OwnPods {
  readonly count: number
  /** Asked only where some must go: the pods that count. */
  active(): readonly Frozen<Pod>[]
  /** Asked only where some must go: the pods of all that share the set's controller. */
  related(): readonly Frozen<Pod>[]
}

export function planReplicas(replicaSet: Frozen<ReplicaSet>, { count, active, related }: OwnPods, nowMs: number): ReplicaPlan {
  const difference = count - (replicaSet.spec.replicas ?? 1)
  if (difference < 0) return { create: Math.min(-difference, burstReplicas), remove: [] }
  if (difference === 0) return { create: 0, remove: [] }
  return { create: 0, remove: podsToDelete(active(), related(), Math.min(difference, burstReplicas), nowMs) }
}

/** The counts and conditions of a ReplicaSet's status. */
export function replicaSetStatus(replicaSet: Frozen<ReplicaSet>, counts: ReplicaCounts, failure: string | undefined, nowMs: number): ReplicaSetStatus {
  return {
    replicas: counts.active,
    ...ifAny('fullyLabeledReplicas', counts.fullyLabeled),
    ...ifAny('readyReplicas', counts.ready),
    ...ifAny('availableReplicas', counts.available),
    terminatingReplicas: counts.terminating,
    observedGeneration: replicaSet.metadata.generation,
    ...conditions(replicaSet, counts.active, failure, nowMs),
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
export function msUntilNextAvailable(replicaSet: Frozen<ReplicaSet>, active: () => readonly Frozen<Pod>[], nowMs: number): number | undefined {
  const minReadySeconds = replicaSet.spec.minReadySeconds ?? 0
  if (minReadySeconds === 0) return undefined
  const waits = active()
    .flatMap((pod) => msUntilAvailable(pod, minReadySeconds, nowMs) ?? [])
    .filter((ms) => ms > 0)
  return waits.length === 0 ? undefined : least(waits)
}
