/** Questions about a pod's state (L1). Upstream: kubernetes/pkg/api/v1/pod/util.go, pkg/controller/controller_utils.go (v1.36). */
import type { Pod, PodCondition } from '#api/gen/types/core.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { parseTime } from '#base/time'

export function podCondition(pod: Frozen<Pod>, type: string): Frozen<PodCondition> | undefined {
  return findCondition(pod.status?.conditions, type)
}

export function isPodReady(pod: Frozen<Pod>): boolean {
  return podCondition(pod, 'Ready')?.status === 'True'
}

/** All containers have ended and will not start again. */
export function isPodTerminal(pod: Frozen<Pod>): boolean {
  return pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded'
}

/** Counts towards a controller's replicas: neither ended nor being deleted. */
export function isPodActive(pod: Frozen<Pod>): boolean {
  return !isPodTerminal(pod) && !pod.metadata.deletionTimestamp
}

export function isPodTerminating(pod: Frozen<Pod>): boolean {
  return !isPodTerminal(pod) && pod.metadata.deletionTimestamp !== undefined
}

/** Ready for at least `minReadySeconds`. */
export function isPodAvailable(pod: Frozen<Pod>, minReadySeconds: number, nowMs: number): boolean {
  if (!isPodReady(pod)) return false
  if (minReadySeconds === 0) return true
  const since = parseTime(podCondition(pod, 'Ready')?.lastTransitionTime ?? '')
  return since !== undefined && since + minReadySeconds * 1000 <= nowMs
}

/** Milliseconds until the pod becomes available by time alone; undefined when time alone does not do it. */
export function msUntilAvailable(pod: Frozen<Pod>, minReadySeconds: number, nowMs: number): number | undefined {
  if (!isPodReady(pod)) return undefined
  const since = parseTime(podCondition(pod, 'Ready')?.lastTransitionTime ?? '')
  return since === undefined ? undefined : Math.max(0, since + minReadySeconds * 1000 - nowMs)
}

/** `spec.priority`, or 0. */
export function podPriority(pod: Frozen<Pod>): number {
  return pod.spec.priority ?? 0
}

/** A static pod's image in the API: made by a kubelet from a file, not by anyone here. */
export function isMirrorPod(pod: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined } }): boolean {
  return pod.metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined
}
