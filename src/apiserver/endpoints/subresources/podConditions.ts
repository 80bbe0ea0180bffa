/** Conditions that the server itself sets on pods (L3). Upstream: UpdatePodCondition of pkg/api/pod/util.go (v1.36). */
import type { Pod, PodCondition } from '#api/gen/types/core.v1'
import { formatTime } from '#base/time'

/** Replaces the condition of its type, or appends it; lastTransitionTime changes only with the status. */
export function setPodCondition(pod: Pod, wanted: PodCondition, nowMs: number): void {
  pod.status ??= {}
  pod.status.conditions ??= []
  const { conditions } = pod.status
  const at = conditions.findIndex(({ type }) => type === wanted.type)
  const lastTransitionTime = conditions[at]?.status === wanted.status ? conditions[at].lastTransitionTime : formatTime(nowMs)
  const condition: PodCondition = { ...wanted, observedGeneration: pod.metadata.generation, lastTransitionTime }
  if (at < 0) conditions.push(condition)
  else conditions[at] = condition
}
