/** Which pods the static memory policy pins (L3, pure). Upstream: kubelet/cm/memorymanager/policy_static.go (v1.36). */
import { podQosClass } from '../../core/cgroupResources.ts'
import type { FrozenPod } from '../../core/containers.ts'

/** A pod that asks as a whole has no containers to pin. */
export function isPinned(pod: FrozenPod): boolean {
  return podQosClass(pod) === 'Guaranteed' && !pod.spec.resources?.requests && !pod.spec.resources?.limits
}
