/** Which containers the static CPU policy pins (L3, pure). Upstream: kubelet/cm/cpumanager/policy_static.go (v1.36). */
import { podQosClass } from '../../core/cgroupResources.ts'
import type { FrozenContainer, FrozenPod } from '../../core/containers.ts'
import { milliUnits } from '../../core/quantities.ts'

/** How many CPUs a container gets for itself; 0: it shares. */
export function exclusiveCpus(pod: FrozenPod, container: FrozenContainer): number {
  // A pod that asks as a whole has no containers to pin.
  if (podQosClass(pod) !== 'Guaranteed' || pod.spec.resources?.requests || pod.spec.resources?.limits) return 0
  const milli = milliUnits(container.resources?.requests?.cpu ?? container.resources?.limits?.cpu)
  return milli % 1000 === 0 ? milli / 1000 : 0
}
