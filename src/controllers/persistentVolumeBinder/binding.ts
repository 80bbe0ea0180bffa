/**
 * Writes bindings and phases (L3): first the volume, then the claim, so that a process that dies in between leaves a volume that the next one can bind.
 * Each write is in the caches when it returns. Upstream: pkg/controller/volume/persistentvolume/pv_controller.go bind, unbindVolume,
 * updateClaimStatus, updateVolumePhase (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { promisedTo, volumeAnnotations } from '#api/helpers/volumes'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities, isQuantity } from '#api/machinery/quantity'
import type { ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { PlannedEvent } from './claimPlan.ts'
import { unbound } from './volumePlan.ts'

type Claim = Frozen<PersistentVolumeClaim>
type Volume = Frozen<PersistentVolume>

export interface Binding {
  readonly volumes: ResourceClient<PersistentVolume>
  readonly claims: ResourceClient<PersistentVolumeClaim>
  readonly events: EventRecorder
}

/** @throws Status Conflict when another client was faster: reconcile again */
export async function bind({ volumes, claims }: Binding, volume: Volume, claim: Claim, signal: AbortSignal): Promise<void> {
  const promised = promisedTo(volume, claim)
  const written = promised === volume ? volume : await volumes.update(promised, { signal })
  await setVolumePhase(volumes, written, 'Bound', '', signal)
  const bound = boundClaim(claim, volume.metadata.name ?? '')
  const current = bound === claim ? claim : await claims.update(bound, { signal })
  await setClaimStatus(claims, current, 'Bound', volume, signal)
}

/** The claim bound to this volume; the same object when it is bound already. */
function boundClaim(claim: Claim, volumeName: string): Claim {
  const { annotations = {} } = claim.metadata
  const names = claim.spec.volumeName === volumeName
  if (names && annotations[volumeAnnotations.bindCompleted] !== undefined) return claim
  const chosen = names ? {} : { [volumeAnnotations.boundByController]: 'yes' }
  const metadata = { ...claim.metadata, annotations: { ...annotations, ...chosen, [volumeAnnotations.bindCompleted]: 'yes' } }
  return { ...claim, metadata, spec: { ...claim.spec, volumeName } }
}

/** @param volume what the status tells the size and modes of; undefined: the claim has none */
export async function setClaimStatus(
  claims: ResourceClient<PersistentVolumeClaim>,
  claim: Claim,
  phase: 'Pending' | 'Bound' | 'Lost',
  volume: Volume | undefined,
  signal: AbortSignal,
): Promise<Claim> {
  const { accessModes: _, capacity: __, currentVolumeAttributesClassName: ___, ...others } = claim.status
  const status = { ...others, phase, ...(volume ? statusOf(volume, claim, phase) : {}) }
  if (semanticEqual(status, claim.status)) return claim
  return claims.updateStatus({ ...claim, status }, { signal })
}

/** Capacity and class are copied at binding only: later they follow the driver's work, which may lag behind the volume's spec. */
function statusOf({ metadata, spec }: Volume, { status }: Claim, phase: string): Partial<Claim['status']> {
  const { capacity, currentVolumeAttributesClassName } = status
  const { accessModes } = spec
  if (status.phase === phase) return present({ accessModes, capacity, currentVolumeAttributesClassName })
  const size = spec.capacity?.storage
  if (size === undefined) throw new Error(`PersistentVolume "${metadata.name}" is without a storage capacity`)
  const before = metadata.annotations?.[volumeAnnotations.preResizeCapacity]
  const known = capacity?.storage
  const boundCapacity =
    before !== undefined
      ? { ...capacity, storage: isQuantity(before) ? before : size }
      : known === undefined || compareQuantities(size, known) !== 0
        ? spec.capacity
        : capacity
  return present({ accessModes, capacity: boundCapacity, currentVolumeAttributesClassName: spec.volumeAttributesClassName })
}

function present<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}

export async function loseClaim({ claims, events }: Binding, claim: Claim, { type, reason, message }: PlannedEvent, signal: AbortSignal): Promise<void> {
  if (claim.status.phase === 'Lost') return
  events.event(await setClaimStatus(claims, claim, 'Lost', undefined, signal), type, reason, message)
}

export type VolumePhase = 'Available' | 'Bound' | 'Released' | 'Failed'

/** Does nothing when the volume has the phase already, whatever its message. */
export async function setVolumePhase(
  volumes: ResourceClient<PersistentVolume>,
  volume: Volume,
  phase: VolumePhase,
  message: string,
  signal: AbortSignal,
): Promise<Volume> {
  if (volume.status?.phase === phase) return volume
  const { message: _, ...others } = volume.status ?? {}
  return volumes.updateStatus({ ...volume, status: { ...others, phase, ...(message ? { message } : {}) } }, { signal })
}

/** The volume has failed, and why; said once. */
export async function failVolume({ volumes, events }: Binding, volume: Volume, reason: string, message: string, signal: AbortSignal): Promise<void> {
  if (volume.status?.phase === 'Failed') return
  events.event(await setVolumePhase(volumes, volume, 'Failed', message, signal), 'Warning', reason, message)
}

export async function unbind({ volumes }: Binding, volume: Volume, signal: AbortSignal): Promise<void> {
  await setVolumePhase(volumes, await volumes.update(unbound(volume), { signal }), 'Available', '', signal)
}
