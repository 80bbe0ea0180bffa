/**
 * Sets the owners of a StatefulSet's claims (L3) by persistentVolumeClaimRetentionPolicy: a claim is deleted with its owner. While a pod is
 * wanted, the set may own its claims; when scaling removes the pod, the pod may. Pure. Upstream: pkg/controller/statefulset/stateful_set_utils.go (v1.36).
 */
import type { StatefulSet } from '#api/gen/types/apps.v1'
import type { PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { controllerReference } from '#api/helpers/owners'
import type { Frozen, KubeObject, OwnerReference } from '#api/machinery/meta'

type Reference = Readonly<OwnerReference>

/**
 * The owner references that a pod's claim should have.
 * @param scaledDown the set no longer wants the pod
 * @returns undefined when they are as they should be, or are not ours to change
 */
export function claimReferences(set: Frozen<StatefulSet>, pod: Frozen<Pod>, claim: Frozen<PersistentVolumeClaim>, scaledDown: boolean) {
  const { whenDeleted = 'Retain', whenScaled = 'Retain' } = set.spec.persistentVolumeClaimRetentionPolicy ?? {}
  const references = claim.metadata.ownerReferences ?? []
  // Left over from a set or pod of the same name: the garbage collector's work.
  if (references.some((reference) => isStale(reference, set) || isStale(reference, pod))) return undefined
  const isOurs = (reference: Reference) => names(reference, set) || names(reference, pod)
  const others = references.filter((reference) => !isOurs(reference))
  const managed = whenDeleted !== 'Retain' || whenScaled !== 'Retain'
  const foreign = managed && others.some(({ controller }) => controller === true)
  const ours = references.filter(isOurs)
  const podOwns = !foreign && whenScaled === 'Delete' && scaledDown
  const setOwns = !foreign && whenDeleted === 'Delete' && !podOwns
  const isOwned = (owner: Frozen<KubeObject>) => ours.some((reference) => names(reference, owner))
  if (isOwned(set) === setOwns && isOwned(pod) === podOwns && ours.every(({ controller }) => controller === true)) return undefined
  return [...others, ...(setOwns ? [controllerReference(set)] : []), ...(podOwns ? [controllerReference(pod)] : [])]
}

/** The claim goes with a former pod of this name: its successor must wait for a new one. */
export function isClaimStale(set: Frozen<StatefulSet>, podName: string, claim: Frozen<PersistentVolumeClaim>): boolean {
  if ((set.spec.persistentVolumeClaimRetentionPolicy?.whenScaled ?? 'Retain') === 'Retain') return false
  return (claim.metadata.ownerReferences ?? []).some(({ kind, apiVersion, name }) => kind === 'Pod' && apiVersion === 'v1' && name === podName)
}

function names(reference: Reference, owner: Frozen<KubeObject>): boolean {
  return reference.apiVersion === owner.apiVersion && reference.kind === owner.kind && reference.name === owner.metadata.name
}

const isStale = (reference: Reference, owner: Frozen<KubeObject>): boolean => names(reference, owner) && reference.uid !== owner.metadata.uid
