/** Events that may make a pod without devices schedulable (L3). Upstream: dynamicresources.go EventsToRegister, isSchedulableAfterClaimChange (v1.36). */
import type { Pod } from '#api/gen/types/core.v1'
import { podRequests } from '#api/helpers/podResources'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { actions, on, type Requeue } from '../../framework/clusterEvent.ts'
import { type ClaimTracker, claimsOf, isExtendedClaim } from './claimTracker.ts'
import type { ExtendedResourceClasses } from './extendedResources.ts'

export function requeueEvents(tracker: ClaimTracker, classes: ExtendedResourceClasses): readonly Requeue[] {
  return [
    on('Node', actions.Add | actions.UpdateNodeLabel),
    on('ResourceClaim', actions.Add | actions.Update | actions.Delete, (pod, { old, object }) => {
      // The leftover of an earlier try, or devices that an extended resource had.
      if (!object) return old !== undefined && isExtendedClaim(old) && usesDevices(pod, classes)
      const found = claimsOf(pod, tracker)
      if ('reason' in found) return false
      // Released devices may fit any claim.
      if (old?.status?.allocation && !object?.status?.allocation) return true
      if (!found.claims.some(({ metadata }) => metadata.uid === object?.metadata.uid)) return false
      return !old || !semanticEqual(old.status, object?.status)
    }),
    // An assumed pod that loses its node releases devices that no claim's status shows.
    on('AssignedPod', actions.Delete, (_pod, { old }) => old !== undefined && usesDevices(old, classes)),
    on('TargetPod', actions.UpdatePodGeneratedResourceClaim, (_pod, { object }) => object !== undefined && 'claims' in claimsOf(object, tracker)),
    on('DeviceClass', actions.Add | actions.Update),
    on('ResourceSlice', actions.Add | actions.Update),
  ]
}

/** The pod uses devices by claims or by extended resources. */
function usesDevices(pod: Frozen<Pod>, classes: ExtendedResourceClasses): boolean {
  return (pod.spec.resourceClaims ?? []).length > 0 || classes.givenBy(Object.keys(podRequests(pod))).length > 0
}
