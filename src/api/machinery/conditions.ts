/** Lists of conditions, one per type (L1). Upstream: apimachinery/pkg/api/meta/conditions.go and the per-kind copies of it. */
import type { Condition } from '#api/gen/types/meta.v1'
import { formatTime } from '#base/time'

interface AnyCondition {
  type: string
  status: string
}

export function findCondition<T extends { readonly type: string }>(conditions: readonly T[] | undefined, type: string): T | undefined {
  return conditions?.find((condition) => condition.type === type)
}

export function isConditionTrue(conditions: readonly Readonly<AnyCondition>[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True'
}

/**
 * Puts a condition in its place or at the end, in the given array. lastTransitionTime moves only when the status does.
 * @returns whether anything changed
 */
export function setStatusCondition(
  conditions: Condition[],
  wanted: Omit<Condition, 'lastTransitionTime'> & { lastTransitionTime?: string | undefined },
  nowMs: number,
): boolean {
  const now = wanted.lastTransitionTime ?? formatTime(nowMs)
  const existing = findCondition(conditions, wanted.type)
  if (!existing) {
    conditions.push({ ...wanted, lastTransitionTime: now })
    return true
  }
  const transition = existing.status !== wanted.status
  const changed =
    transition || existing.reason !== wanted.reason || existing.message !== wanted.message || existing.observedGeneration !== wanted.observedGeneration
  Object.assign(existing, wanted, { lastTransitionTime: transition ? now : existing.lastTransitionTime })
  return changed
}

/** The list without the type. */
export function withoutCondition<T extends { readonly type: string }>(conditions: readonly T[] | undefined, type: string): T[] {
  return conditions?.filter((condition) => condition.type !== type) ?? []
}
