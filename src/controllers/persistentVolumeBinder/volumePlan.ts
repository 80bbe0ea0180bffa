/**
 * What to do about a volume (L3, pure): give it its phase, let its claim finish the binding, take a promise back, or reclaim it.
 * Upstream: pkg/controller/volume/persistentvolume/pv_controller.go syncVolume, isVolumeReleased (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { isSameMode, volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'

type Claim = Frozen<PersistentVolumeClaim>
type Volume = Frozen<PersistentVolume>

export type VolumePlan =
  | { readonly act: 'setPhase'; readonly phase: 'Available' | 'Bound' }
  | { readonly act: 'syncClaim' }
  | { readonly act: 'reportMode'; readonly aboutVolume: string; readonly aboutClaim: string }
  | { readonly act: 'unbind' }
  | { readonly act: 'reclaim' }

/** @param claim the one with the uid that the volume names; undefined: there is none any more */
export function planVolume(volume: Volume, claim: Claim | undefined): VolumePlan {
  const { claimRef, persistentVolumeReclaimPolicy } = volume.spec
  // Without a uid the volume is reserved for a claim that does not exist yet.
  if (!claimRef?.uid) return { act: 'setPhase', phase: 'Available' }
  if (!claim) return { act: 'reclaim' }
  if (!claim.spec.volumeName) return isSameMode(volume, claim) ? { act: 'syncClaim' } : modeMismatch(volume, claim)
  if (claim.spec.volumeName === volume.metadata.name) return { act: 'setPhase', phase: 'Bound' }
  // Provisioned for a claim that was bound to another volume meanwhile: the volume is unused.
  const isSpare = volume.metadata.annotations?.[volumeAnnotations.provisionedBy] !== undefined && persistentVolumeReclaimPolicy === 'Delete'
  return isSpare ? { act: 'reclaim' } : { act: 'unbind' }
}

function modeMismatch(volume: Volume, claim: Claim): VolumePlan {
  return {
    act: 'reportMode',
    aboutVolume: `Cannot bind PersistentVolume to requested PersistentVolumeClaim "${claim.metadata.name}" due to incompatible volumeMode.`,
    aboutClaim: `Cannot bind PersistentVolume "${volume.metadata.name}" to requested PersistentVolumeClaim due to incompatible volumeMode.`,
  }
}

/** The volume without the promise: free when the controller had chosen, still meant for the claim's successor when a person had. */
export function unbound(volume: Volume): Volume {
  const { [volumeAnnotations.boundByController]: chosen, ...annotations } = volume.metadata.annotations ?? {}
  const { claimRef, ...spec } = volume.spec
  if (chosen !== undefined) return { ...volume, metadata: { ...volume.metadata, annotations }, spec }
  const { uid: _, ...meantFor } = claimRef ?? {}
  return { ...volume, spec: { ...spec, claimRef: meantFor } }
}

/** Whether the volume has no claim any more. */
export function isReleased({ metadata, spec }: Volume, claimOf: (key: string) => Claim | undefined): boolean {
  if (!spec.claimRef?.uid) return false
  const claim = claimOf(`${spec.claimRef.namespace}/${spec.claimRef.name}`)
  if (claim?.metadata.uid !== spec.claimRef.uid) return true
  return Boolean(claim.spec.volumeName) && claim.spec.volumeName !== metadata.name
}
