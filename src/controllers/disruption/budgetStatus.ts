/**
 * Computes the status of a PodDisruptionBudget (L3). Pure. Upstream: pkg/controller/disruption/disruption.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Condition } from '#api/gen/types/meta.v1'
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '#api/gen/types/policy.v1'
import { isPodReady, isPodTerminal, podCondition } from '#api/helpers/pods'
import { setStatusCondition } from '#api/machinery/conditions'
import { scaledValue } from '#api/machinery/intOrString'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { least } from '#base/extremes'
import { parseTime } from '#base/time'

/** An eviction that was granted and whose pod is still not being deleted after this long did not happen. */
export const deletionTimeoutMs = 2 * 60_000

/** @param wanted sum of the desired replicas of the pods' controllers; used where the budget is relative to it. */
export function budgetStatus(budget: Frozen<PodDisruptionBudget>, selected: readonly Frozen<Pod>[], wanted: number, nowMs: number): PodDisruptionBudgetStatus {
  // The sum over controllers of 2147483647 replicas each exceeds the integer type of the status.
  const expected = Math.min(wanted, 2 ** 31 - 1)
  const { maxUnavailable, minAvailable } = budget.spec
  const disruptedPods = stillDisrupted(budget, selected, nowMs)
  const currentHealthy = selected.filter(
    (pod) => isPodReady(pod) && !pod.metadata.deletionTimestamp && !Object.hasOwn(disruptedPods, pod.metadata.name ?? ''),
  ).length
  let expectedPods = selected.length
  let desiredHealthy = 0
  if (maxUnavailable !== undefined) {
    expectedPods = expected
    desiredHealthy = Math.max(0, expected - (scaledValue(maxUnavailable, expected, true) ?? 0))
  } else if (typeof minAvailable === 'number') desiredHealthy = minAvailable
  else if (minAvailable !== undefined) {
    expectedPods = expected
    desiredHealthy = scaledValue(minAvailable, expected, true) ?? 0
  }
  const disruptionsAllowed = expectedPods > 0 ? Math.max(0, currentHealthy - desiredHealthy) : 0
  const conditions: Condition[] = (budget.status?.conditions ?? []).map((condition) => ({ ...condition }))
  const { generation } = budget.metadata
  const allowed = disruptionsAllowed > 0 ? { status: 'True', reason: 'SufficientPods' } : { status: 'False', reason: 'InsufficientPods' }
  setStatusCondition(conditions, { type: 'DisruptionAllowed', ...allowed, message: '', observedGeneration: generation }, nowMs)
  return {
    ...(Object.keys(disruptedPods).length > 0 ? { disruptedPods } : {}),
    disruptionsAllowed,
    currentHealthy,
    desiredHealthy,
    expectedPods,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    conditions,
  }
}

export function stillDisrupted(budget: Frozen<PodDisruptionBudget>, selected: readonly Frozen<Pod>[], nowMs: number): Record<string, string> {
  const there = budget.status?.disruptedPods ?? {}
  const waiting = selected.flatMap(({ metadata }): [string, string][] => {
    const time = ownValue(there, metadata.name ?? '')
    const expired = time === undefined || (parseTime(time) ?? 0) + deletionTimeoutMs < nowMs
    return expired || metadata.deletionTimestamp ? [] : [[metadata.name ?? '', time]]
  })
  return Object.fromEntries(waiting)
}

/** Pods of the status whose granted eviction did not happen in time. */
export function notDeleted(budget: Frozen<PodDisruptionBudget>, selected: readonly Frozen<Pod>[], nowMs: number): readonly Frozen<Pod>[] {
  const there = budget.status?.disruptedPods ?? {}
  const still = stillDisrupted(budget, selected, nowMs)
  return selected.filter(
    ({ metadata: { name = '', deletionTimestamp } }) => !deletionTimestamp && ownValue(there, name) !== undefined && ownValue(still, name) === undefined,
  )
}

/** When the first of the granted evictions will be over its time; undefined: none is waiting. */
export function msUntilRecheck(disruptedPods: Readonly<Record<string, string>> | undefined, nowMs: number): number | undefined {
  const times = Object.values(disruptedPods ?? {}).map((time) => (parseTime(time) ?? nowMs) + deletionTimeoutMs - nowMs)
  return times.length === 0 ? undefined : Math.max(0, least(times)) + 1
}

/** What can still be said when the pods could not be counted: nothing may be evicted. */
export function failedStatus(budget: Frozen<PodDisruptionBudget>, message: string, nowMs: number): PodDisruptionBudgetStatus {
  const { status } = budget
  const conditions: Condition[] = (status?.conditions ?? []).map((condition) => ({ ...condition }))
  const observedGeneration = status?.observedGeneration
  setStatusCondition(
    conditions,
    { type: 'DisruptionAllowed', status: 'False', reason: 'SyncFailed', message, ...(observedGeneration === undefined ? {} : { observedGeneration }) },
    nowMs,
  )
  const zero = { currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }
  return { ...zero, ...(status as PodDisruptionBudgetStatus | undefined), disruptionsAllowed: 0, conditions }
}

/** How long a pod may be marked for disruption without being deleted. */
const staleMs = 2 * 60_000

/** Until a pod's mark counts as stale; undefined when it bears none, or one that may stay. */
export function msUntilStale(pod: Frozen<Pod>, nowMs: number): number | undefined {
  const condition = podCondition(pod, 'DisruptionTarget')
  // A kubelet may take its time.
  if (pod.metadata.deletionTimestamp || isPodTerminal(pod) || condition?.status !== 'True' || condition.reason === 'TerminationByKubelet') return undefined
  return Math.max(0, (parseTime(condition.lastTransitionTime ?? '') ?? nowMs) + staleMs - nowMs)
}
