/**
 * What to do about a claim (L3, pure): bind it, have its volume made, wait, or call it lost.
 * Upstream: pkg/controller/volume/persistentvolume/pv_controller.go syncClaim (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { hasModes, isBoundToClaim, isSameAttributesClass, isSameMode, namesStorageClass, storageClassOf, volumeAnnotations } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import type { EventType } from '#client/eventRecorder'

type Claim = Frozen<PersistentVolumeClaim>
type Volume = Frozen<PersistentVolume>

/** What a claim is judged by. */
export interface ClaimView {
  volume(name: string): Volume | undefined
  storageClass(name: string): Frozen<StorageClass> | undefined
  defaultClass(): string | undefined
  /** The volume that would do; `onlyPrebound`: among those meant for the claim. */
  best(claim: Claim, onlyPrebound: boolean): Volume | undefined
  /** Names of pods that use the claim and have no node yet. */
  waitingPods(claim: Claim): readonly string[]
}

export interface PlannedEvent {
  readonly type: EventType
  readonly reason: string
  readonly message: string
}

export type ClaimPlan =
  | { readonly act: 'bind'; readonly volume: Volume }
  | { readonly act: 'wait'; readonly event?: PlannedEvent; readonly fault?: string }
  | { readonly act: 'lose'; readonly event: PlannedEvent }
  | { readonly act: 'setClass'; readonly name: string }
  | { readonly act: 'provision' }

export function planClaim(claim: Claim, view: ClaimView): ClaimPlan {
  const isDone = claim.metadata.annotations?.[volumeAnnotations.bindCompleted] !== undefined
  if (isDone) return planBound(claim, view)
  return claim.spec.volumeName ? planRequested(claim, claim.spec.volumeName, view) : planFree(claim, view)
}

const warning = (reason: string, message: string): PlannedEvent => ({ type: 'Warning', reason, message })
const normal = (reason: string, message: string): PlannedEvent => ({ type: 'Normal', reason, message })

function planFree(claim: Claim, view: ClaimView): ClaimPlan {
  const className = storageClassOf(claim)
  const waitsForConsumer = className !== '' && view.storageClass(className)?.volumeBindingMode === 'WaitForFirstConsumer'
  const volume = view.best(claim, waitsForConsumer)
  if (volume) return { act: 'bind', volume }
  const defaultClass = namesStorageClass(claim) ? undefined : view.defaultClass()
  if (defaultClass !== undefined) return { act: 'setClass', name: defaultClass }
  if (waitsForConsumer && claim.metadata.annotations?.[volumeAnnotations.selectedNode] === undefined) {
    return { act: 'wait', event: consumerEvent(view.waitingPods(claim)) }
  }
  if (className !== '') return { act: 'provision' }
  return { act: 'wait', event: normal('FailedBinding', 'no persistent volumes available for this claim and no storage class is set') }
}

function consumerEvent(pods: readonly string[]): PlannedEvent {
  if (pods.length === 0) return normal('WaitForFirstConsumer', 'waiting for first consumer to be created before binding')
  return normal('WaitForPodScheduled', `waiting for ${pods.length > 1 ? 'pods' : 'pod'} ${pods.join(',')} to be scheduled`)
}

function planRequested(claim: Claim, name: string, view: ClaimView): ClaimPlan {
  const volume = view.volume(name)
  if (!volume) return { act: 'wait' }
  if (!volume.spec.claimRef) {
    const problem = mismatch(volume, claim)
    if (problem === undefined) return { act: 'bind', volume }
    return { act: 'wait', event: warning('VolumeMismatch', `Cannot bind to requested volume "${name}": ${problem}`) }
  }
  if (isBoundToClaim(volume, claim)) return { act: 'bind', volume }
  const event = warning('FailedBinding', `volume "${name}" already bound to a different claim.`)
  if (claim.metadata.annotations?.[volumeAnnotations.boundByController] === undefined) return { act: 'wait', event }
  const { namespace, name: other } = volume.spec.claimRef
  return { act: 'wait', event, fault: `invalid binding of claim "${keyOf(claim)}" to volume "${name}": volume already claimed by "${namespace}/${other}"` }
}

/** Why a volume that a claim asks for by name will not do. */
function mismatch(volume: Volume, claim: Claim): string | undefined {
  if (volume.metadata.deletionTimestamp) return `the volume is marked for deletion "${volume.metadata.name}"`
  if (compareQuantities(volume.spec.capacity?.storage ?? '0', claim.spec.resources?.requests?.storage ?? '0') < 0) return 'requested PV is too small'
  if (storageClassOf(volume) !== storageClassOf(claim)) return 'storageClassName does not match'
  if (!isSameAttributesClass(volume, claim)) return 'volumeAttributesClassName does not match'
  if (!isSameMode(volume, claim)) return 'incompatible volumeMode'
  return hasModes(volume, claim) ? undefined : 'incompatible accessMode'
}

function planBound(claim: Claim, view: ClaimView): ClaimPlan {
  const lost = (reason: string, message: string): ClaimPlan => ({ act: 'lose', event: warning(reason, message) })
  const { volumeName } = claim.spec
  if (!volumeName) return lost('ClaimLost', 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!')
  const volume = view.volume(volumeName)
  if (!volume) return lost('ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!')
  if (volume.spec.claimRef && volume.spec.claimRef.uid !== claim.metadata.uid) {
    return lost('ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly')
  }
  return { act: 'bind', volume }
}
