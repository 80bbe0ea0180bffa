/**
 * Deletes the volumes of released PersistentVolumes (L3), and keeps the finalizer that holds the object until then.
 * Upstream: sig-storage-lib-external-provisioner, controller.go syncVolume; external-provisioner, csiProvisioner.Delete.
 */
import type { PersistentVolume } from '#api/gen/types/core.v1'
import type { StorageClass, VolumeAttachment } from '#api/gen/types/storage.v1'
import { storageClassOf, volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { Client, ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import { unlessGone } from '#client/unlessGone'
import { isProtected } from '#controllers/shared/protection'
import type { TextMap } from '../../server/csiTypes.ts'
import type { CsiConnection, CsiDriverFacts } from '../driver.ts'
import { setFinalizer } from '../finalizers.ts'
import { credentialsOf, type SecretReference, secretReferenceOf } from '../secrets.ts'
import type { CapacityPublisher } from './capacity.ts'
import { secretTokensOf } from './createRequest.ts'
import { secretKeys } from './parameters.ts'
import { secretAnnotations, volumeFinalizer } from './provisionedVolume.ts'

type Volume = Frozen<PersistentVolume>

export interface DeletingDeps {
  readonly client: Client
  readonly connection: CsiConnection
  readonly driver: CsiDriverFacts
  readonly log: Logger
  readonly events: EventRecorder
  readonly timeoutMs: number
  readonly volumes: ResourceClient<PersistentVolume>
  volume(name: string): Volume | undefined
  storageClass(name: string): Frozen<StorageClass> | undefined
  capacityChanged: CapacityPublisher['refresh']
  /** Undefined: none. */
  attachmentOf(volumeName: string): Frozen<VolumeAttachment> | undefined
}

export function isOfDriver({ metadata, spec }: Volume, driver: string): boolean {
  const provisioner = ownValue(metadata.annotations, volumeAnnotations.provisionedBy)
  return provisioner === undefined ? spec.csi?.driver === driver : provisioner === driver
}

export function createDeleting(deps: DeletingDeps): (name: string, signal: AbortSignal) => Promise<undefined> {
  const { client, connection, driver, log, events, volumes, timeoutMs } = deps

  return async (name, signal) => {
    const cached = deps.volume(name)
    if (!cached || !isOfDriver(cached, driver.name)) return
    if (!mustBeDeleted(await withRightFinalizer(cached, signal))) return
    // The copy may be old, and the administrator may have rescued the volume since.
    const volume = await current(cached, signal)
    if (!volume || !mustBeDeleted(volume)) return
    try {
      await deleteAtDriver(volume, signal)
    } catch (error) {
      if (!signal.aborted && !(error instanceof InUseError)) events.event(volume, 'Warning', 'VolumeFailedDelete', messageOf(error))
      if (error instanceof InUseError) events.event(volume, 'Normal', 'VolumeDelete', error.message)
      throw error
    }
    await unlessGone(async () => {
      await volumes.delete({ name }, { signal, preconditions: { uid: volume.metadata.uid } })
      await setFinalizer(volumes, await volumes.get({ name }, { signal }), volumeFinalizer, false, signal)
    })
  }

  /** Undefined: the volume is gone, or another one has its name. */
  async function current({ metadata }: Volume, signal: AbortSignal): Promise<Volume | undefined> {
    const found = await unlessGone(() => volumes.get({ name: metadata.name ?? '' }, { signal }))
    return found?.metadata.uid === metadata.uid ? found : undefined
  }

  /** Volumes that are kept have no finalizer: their owner deletes the object alone. */
  async function withRightFinalizer(volume: Volume, signal: AbortSignal): Promise<Volume> {
    const has = isProtected(volume, volumeFinalizer)
    const policy = volume.spec.persistentVolumeReclaimPolicy
    const isKept = policy === 'Retain' || policy === 'Recycle'
    const isNew = policy === 'Delete' && volume.metadata.deletionTimestamp === undefined && volume.status.phase === 'Bound'
    return (has && isKept) || (!has && isNew) ? setFinalizer(volumes, volume, volumeFinalizer, !has, signal) : volume
  }

  async function deleteAtDriver(volume: Volume, signal: AbortSignal): Promise<void> {
    const { name = '' } = volume.metadata
    const volumeId = volume.spec.csi?.volumeHandle
    if (volumeId === undefined) throw new Error('invalid CSI PV')
    if (!driver.controller.has('CREATE_DELETE_VOLUME'))
      throw new Error('CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported')
    const secrets = await secretsOf(volume, signal)
    const attachment = deps.attachmentOf(name)
    if (attachment) throw new InUseError(`persistentvolume ${name} is still attached to node ${attachment.spec.nodeName}, waiting for detach`)
    await connection.call('deleteVolume', { volumeId, secrets }, timeoutMs, signal)
    deps.capacityChanged(volume, storageClassOf(volume))
  }

  /** A Secret that is gone does not keep the volume: the driver decides. */
  async function secretsOf(volume: Volume, signal: AbortSignal): Promise<TextMap> {
    const reference = secretReferenceOfVolume(volume)
    try {
      return await credentialsOf(client, reference, signal)
    } catch (error) {
      signal.throwIfAborted()
      log.warn('Deleting a volume without its Secret', { volume: volume.metadata.name, error: messageOf(error) })
      return {}
    }
  }

  /** From the annotations that creation wrote; for other volumes from the class. */
  function secretReferenceOfVolume(volume: Volume): SecretReference | undefined {
    const { annotations, name: volumeName = '' } = volume.metadata
    const name = ownValue(annotations, secretAnnotations.deletion.name)
    const namespace = ownValue(annotations, secretAnnotations.deletion.namespace)
    if (name !== undefined && namespace !== undefined) return name !== '' && namespace !== '' ? { name, namespace } : undefined
    const { claimRef } = volume.spec
    const parameters = deps.storageClass(storageClassOf(volume))?.parameters
    if (!claimRef || !parameters) return undefined
    const tokens = secretTokensOf(volumeName, { namespace: claimRef.namespace, name: claimRef.name })
    return secretReferenceOf(parameters, secretKeys.provisioner, secretKeys.default, tokens)
  }
}

/** The detach comes first; the volume is tried again. */
class InUseError extends Error {}

function mustBeDeleted({ metadata, spec, status }: Volume): boolean {
  const isDone = metadata.deletionTimestamp !== undefined && !metadata.finalizers?.includes(volumeFinalizer)
  return !isDone && status.phase === 'Released' && spec.persistentVolumeReclaimPolicy === 'Delete'
}
