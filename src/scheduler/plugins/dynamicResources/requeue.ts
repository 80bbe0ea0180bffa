/** What may help a pod that has no devices (L3). Upstream: dynamicresources.go EventsToRegister, isSchedulableAfterClaimChange (v1.36). */
import { semanticEqual } from '#api/machinery/equality'
import { actions, on, type Requeue } from '../../framework/clusterEvent.ts'
import { type ClaimTracker, claimsOf } from './claimTracker.ts'

export function requeueEvents(tracker: ClaimTracker): readonly Requeue[] {
  return [
    on('Node', actions.Add | actions.UpdateNodeLabel),
    on('ResourceClaim', actions.Add | actions.Update, (pod, { old, object }) => {
      const found = claimsOf(pod, tracker)
      if ('reason' in found) return false
      // Whoever gives devices back may have given them to anybody.
      if (old?.status?.allocation && !object?.status?.allocation) return true
      if (!found.claims.some(({ metadata }) => metadata.uid === object?.metadata.uid)) return false
      return !old || !semanticEqual(old.status, object?.status)
    }),
    // One that loses its node gives promised devices back, which no claim tells of.
    on('AssignedPod', actions.Delete, (_pod, { old }) => (old?.spec.resourceClaims ?? []).length > 0),
    on('TargetPod', actions.UpdatePodGeneratedResourceClaim, (_pod, { object }) => object !== undefined && 'claims' in claimsOf(object, tracker)),
    on('DeviceClass', actions.Add | actions.Update),
    on('ResourceSlice', actions.Add | actions.Update),
  ]
}
