/**
 * The claims of a pod, sorted by the scheduler's work for them (L3): none, find a volume for each node, or wait for another component.
 * Upstream: plugins/volumebinding/volume_binding.go podHasPVCs, binder.go GetPodVolumeClaims (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { claimNameOf, isFullyBound, otherPodsClaim, storageClassOf } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import type { Lister } from '#client/cache/lister'
import { type Refusal, reasons, unresolvable } from '../../framework/status.ts'
import type { AssumedObjects } from './assumedObjects.ts'

export interface PodClaims {
  /** Absent: the volume does not exist. */
  readonly boundVolumes: readonly (Frozen<PersistentVolume> | undefined)[]
  /** The node is chosen first. */
  readonly delayed: readonly Frozen<PersistentVolumeClaim>[]
}

interface Sources {
  readonly claims: AssumedObjects<PersistentVolumeClaim>
  readonly volumes: AssumedObjects<PersistentVolume>
  readonly classes: Lister<StorageClass>
}

/** Undefined: the pod has no claims. */
export function podClaims(pod: Frozen<Pod>, { claims, volumes, classes }: Sources): PodClaims | Refusal | undefined {
  const all: Frozen<PersistentVolumeClaim>[] = []
  for (const volume of pod.spec.volumes ?? []) {
    const name = claimNameOf(pod, volume)
    if (name === undefined) continue
    const claim = claims.get(`${pod.metadata.namespace}/${name}`)
    const problem = problemOf(pod, volume, name, claim)
    if (problem !== undefined) return unresolvable(problem)
    all.push(claim as Frozen<PersistentVolumeClaim>)
  }
  if (all.length === 0) return undefined
  const unbound = all.filter((claim) => !isFullyBound(claim))
  // The controller binds a claim that names its volume, whatever its class is.
  if (unbound.some((claim) => claim.spec.volumeName || !waitsForConsumer(claim, classes))) return unresolvable(reasons.unboundImmediateClaims)
  const boundVolumes = all.filter(isFullyBound).map(({ spec }) => volumes.get(spec.volumeName ?? ''))
  return { boundVolumes, delayed: unbound }
}

function problemOf(pod: Frozen<Pod>, volume: Frozen<Volume>, name: string, claim: Frozen<PersistentVolumeClaim> | undefined): string | undefined {
  if (!claim) {
    if (volume.ephemeral) return `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`
    return reasons.claimNotFound(name)
  }
  if (claim.status.phase === 'Lost') return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${claim.spec.volumeName ?? ''}"`
  if (claim.metadata.deletionTimestamp) return `persistentvolumeclaim "${name}" is being deleted`
  return volume.ephemeral ? otherPodsClaim(pod, claim) : undefined
}

function waitsForConsumer(claim: Frozen<PersistentVolumeClaim>, classes: Lister<StorageClass>): boolean {
  const name = storageClassOf(claim)
  return name !== '' && classes.get({ name })?.volumeBindingMode === 'WaitForFirstConsumer'
}
