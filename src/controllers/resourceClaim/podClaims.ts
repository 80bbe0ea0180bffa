/**
 * How pods and resource claims name each other (L3). Pure. Upstream: k8s.io/dynamic-resource-allocation/resourceclaim (v1.36).
 */
import type { Pod, PodResourceClaim } from '#api/gen/types/core.v1'
import type { ResourceClaim } from '#api/gen/types/resource.v1'
import { controllerOf } from '#api/helpers/owners'
import { isPodTerminal } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'

/** On claims that were made from a template: which of its pod's claims it is. */
export const podClaimAnnotation = 'resource.kubernetes.io/pod-claim-name'

export type ClaimName =
  /** A claim that is named directly may have any owner; one made from a template must belong to the pod. */
  { readonly state: 'known'; readonly name: string; readonly mustBeOwned: boolean } | { readonly state: 'unneeded' } | { readonly state: 'missing' }

export function claimNameOf({ status }: Frozen<Pod>, { name, resourceClaimName }: Frozen<PodResourceClaim>): ClaimName {
  if (resourceClaimName !== undefined) return { state: 'known', name: resourceClaimName, mustBeOwned: false }
  const made = status?.resourceClaimStatuses?.find((one) => one.name === name)
  if (!made) return { state: 'missing' }
  return made.resourceClaimName === undefined ? { state: 'unneeded' } : { state: 'known', name: made.resourceClaimName, mustBeOwned: true }
}

/** The names of all claims of a pod that are known, those for extended resources too. */
export function knownClaimNames(pod: Frozen<Pod>): string[] {
  const named = (pod.spec.resourceClaims ?? []).flatMap((one) => {
    const found = claimNameOf(pod, one)
    return found.state === 'known' ? [found.name] : []
  })
  const extended = pod.status?.extendedResourceClaimStatus?.resourceClaimName
  return extended === undefined ? named : [...named, extended]
}

/** The pod that a claim was made for. */
export function owningPod(claim: Frozen<ResourceClaim>): { readonly name: string; readonly uid: string } | undefined {
  const controller = controllerOf(claim)
  return controller?.apiVersion === 'v1' && controller.kind === 'Pod' ? controller : undefined
}

/** None of its containers runs, or ever will. */
export function isPodDone(pod: Frozen<Pod>): boolean {
  return isPodTerminal(pod) || (pod.metadata.deletionTimestamp !== undefined && !pod.spec.nodeName)
}

const maxReserved = 256

/** Whether an allocated claim still has to be reserved for a pod that has its node already. */
export function needsReservation(pod: Frozen<Pod>, { status }: Frozen<ResourceClaim>): boolean {
  const reserved = status?.reservedFor ?? []
  return status?.allocation !== undefined && reserved.length < maxReserved && !reserved.some(({ uid }) => uid === pod.metadata.uid)
}

/** Room for a hyphen and the five characters that the server adds. */
const maxBase = 57

/** Both names stay recognisable, however long they are. */
export function generatedNamePrefix(podName: string, claimName: string): string {
  const whole = `${podName}-${claimName}-`
  if (whole.length <= maxBase) return whole
  const cut = (text: string) => text.slice(0, Math.floor((text.length * maxBase) / whole.length))
  return `${cut(podName)}-${cut(claimName)}-`
}
