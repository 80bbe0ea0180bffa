/**
 * Creates the volume and the PersistentVolume of a claim (L3). Once the driver was asked, and it is not certain that it made nothing, the call is repeated
 * until it is answered, also when the claim is deleted meanwhile: the PersistentVolume is then created, and deleted like others that are released.
 * Upstream: sig-storage-lib-external-provisioner, controller.go provisionClaimOperation; external-provisioner, csiProvisioner.Provision.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { storageClassOf, volumeAnnotations } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { Result } from '#controllers/framework/reconciler'
import type { Volume } from '../../server/csiTypes.ts'
import type { CsiConnection } from '../driver.ts'
import type { CapacityPublisher } from './capacity.ts'
import { dataSourceOf, type PreparedRequest, prepareRequest, type RequestDeps, selectedNodeOf, volumeNameOf } from './createRequest.ts'
import { provisionedVolume } from './provisionedVolume.ts'
import { isInfeasible, ProvisioningError, stateAfter } from './provisioningError.ts'

type Claim = Frozen<PersistentVolumeClaim>

export interface ProvisioningDeps extends RequestDeps {
  readonly connection: CsiConnection
  readonly clock: Clock
  readonly events: EventRecorder
  readonly identity: string
  readonly claims: ResourceClient<PersistentVolumeClaim>
  /** Its writes are in the cache when they return. */
  readonly volumes: ResourceClient<PersistentVolume>
  readonly options: RequestDeps['options'] & { readonly timeoutMs: number; readonly retryMaxMs: number; readonly publishReadonly: boolean }
  readonly hasTopology: boolean
  /** By its uid. */
  claimOf(uid: string): Claim | undefined
  storageClass(name: string): Frozen<StorageClass> | undefined
  hasVolume(name: string): boolean
  /** The claim has its volume: what it was filled from may be deleted. */
  releaseSource(claim: Claim, signal: AbortSignal): Promise<void>
  capacityChanged: CapacityPublisher['refresh']
  /** The claim's volume exists, or surely does not: what was remembered for repeated calls is dropped. */
  forget(uid: string): void
}

/** Whether the claim waits for a volume of this driver. */
export function awaitsVolume({ metadata, spec }: Claim, driver: string): boolean {
  const { annotations } = metadata
  const provisioner = ownValue(annotations, volumeAnnotations.storageProvisioner) ?? ownValue(annotations, volumeAnnotations.betaStorageProvisioner)
  return !spec.volumeName && provisioner === driver
}

export class Provisioning {
  readonly #deps: ProvisioningDeps
  /** Claims for which the driver may be creating a volume, by uid. */
  readonly #inProgress = new Map<string, Claim>()
  /** Claims that the driver called invalid. */
  readonly #refused = new Map<string, { readonly untilMs: number; readonly classUid: string | undefined }>()

  constructor(deps: ProvisioningDeps) {
    this.#deps = deps
  }

  /** @param uid of the claim. @throws Error to be called again after a wait */
  async reconcile(uid: string, signal: AbortSignal): Promise<Result | undefined> {
    const { driver, storageClass } = this.#deps
    const cached = this.#deps.claimOf(uid)
    const claim = cached && awaitsVolume(cached, driver.name) ? cached : this.#inProgress.get(uid)
    if (!claim) return this.#end(uid)
    const chosen = storageClass(storageClassOf(claim))
    if (!chosen) throw new Error(`storageClass "${storageClassOf(claim)}" not found`)
    const waitMs = this.#refusedForMs(uid, chosen)
    if (waitMs > 0) return { requeueAfterMs: waitMs }
    if (chosen.volumeBindingMode === 'WaitForFirstConsumer' && selectedNodeOf(claim) === undefined) return this.#end(uid)
    if (chosen.provisioner !== driver.name || this.#deps.hasVolume(volumeNameOf(claim))) return this.#end(uid)
    try {
      if (await this.#provision(claim, chosen, signal)) this.#end(uid)
    } catch (error) {
      signal.throwIfAborted()
      return this.#failed(claim, chosen, error, signal)
    }
    return undefined
  }

  #end(uid: string): undefined {
    this.#inProgress.delete(uid)
    this.#refused.delete(uid)
    this.#deps.forget(uid)
  }

  #refusedForMs(uid: string, { metadata }: Frozen<StorageClass>): number {
    const refused = this.#refused.get(uid)
    if (!refused) return 0
    if (refused.classUid === metadata.uid) return refused.untilMs - this.#deps.clock.monotonicMs()
    this.#refused.delete(uid)
    return 0
  }

  /** Resolves with false when the volume is created by another program. */
  async #provision(claim: Claim, storageClass: Frozen<StorageClass>, signal: AbortSignal): Promise<boolean> {
    const { events, volumes } = this.#deps
    events.event(claim, 'Normal', 'Provisioning', `External provisioner is provisioning volume for claim "${keyOf(claim)}"`)
    const source = dataSourceOf(claim)
    if (source && source.kind !== 'VolumeSnapshot' && source.kind !== 'PersistentVolumeClaim') {
      events.event(claim, 'Normal', 'Provisioning', 'Assuming an external populator will provision the volume')
      return false
    }
    const prepared = await prepareRequest(this.#deps, claim, storageClass, signal)
    this.#inProgress.set(claim.metadata.uid ?? '', claim)
    const volume = await this.#createVolume(claim, prepared, signal)
    const stored = await this.#volumeFor(claim, storageClass, prepared, volume, signal)
    try {
      await volumes.create(stored, { signal })
    } catch (error) {
      if (!isStatus(error, 'AlreadyExists')) await this.#notStored(prepared, volume, error, signal)
    }
    this.#deps.capacityChanged(stored as Frozen<PersistentVolume>, storageClassOf(claim))
    await this.#deps.releaseSource(claim, signal)
    events.event(claim, 'Normal', 'ProvisioningSucceeded', `Successfully provisioned volume ${stored.metadata.name}`)
    return true
  }

  async #createVolume(claim: Claim, { request }: PreparedRequest, signal: AbortSignal): Promise<Volume> {
    const { connection, options, hasTopology, capacityChanged } = this.#deps
    try {
      // A driver that breaks the protocol leaves the volume out.
      const { volume } = (await connection.call('createVolume', request, options.timeoutMs, signal)) as { volume: Volume | null }
      if (volume?.volumeId) return volume
    } catch (error) {
      signal.throwIfAborted()
      // A refusal may tell that there is less room than was published.
      capacityChanged(undefined, storageClassOf(claim))
      throw new ProvisioningError(stateAfter(error, hasTopology && selectedNodeOf(claim) !== undefined), messageOf(error), error)
    }
    throw new ProvisioningError('background', 'the driver answered CreateVolume without a volume id')
  }

  async #volumeFor(claim: Claim, storageClass: Frozen<StorageClass>, prepared: PreparedRequest, volume: Volume, signal: AbortSignal) {
    const { driver, identity, hasTopology, options } = this.#deps
    const { requiredBytes } = prepared.request.capacityRange
    // 0: the driver does not know the size.
    const capacityBytes = volume.capacityBytes === 0 ? requiredBytes : volume.capacityBytes
    if (capacityBytes < requiredBytes)
      await this.#refuse(prepared, volume, `created volume capacity ${capacityBytes} less than requested capacity ${requiredBytes}`, signal)
    if (prepared.request.volumeContentSource && !volume.contentSource) await this.#refuse(prepared, volume, 'volume content source missing', signal)
    const modes = prepared.request.volumeCapabilities.map(({ accessMode }) => accessMode?.mode)
    return provisionedVolume({
      ...prepared,
      ...{ claim, storageClass, volume, capacityBytes, identity, hasTopology },
      name: prepared.request.name,
      driver: driver.name,
      isReadOnly: options.publishReadonly && modes.length === 1 && modes[0] === 'MULTI_NODE_READER_ONLY',
    })
  }

  /** A volume that is not what was asked for is deleted. @throws ProvisioningError */
  async #refuse({ request }: PreparedRequest, { volumeId }: Volume, problem: string, signal: AbortSignal): Promise<never> {
    const { connection, options } = this.#deps
    const deletion = connection.call('deleteVolume', { volumeId, secrets: request.secrets }, options.timeoutMs, signal)
    const failure = await deletion.then(
      () => '',
      (error) => `. Cleanup of volume ${request.name} failed, volume is orphaned: ${messageOf(error)}`,
    )
    throw new ProvisioningError('background', `${problem}${failure}`)
  }

  /** The server will not take the object at any time when it is invalid: the driver's answer makes no valid volume. Otherwise all is repeated. */
  async #notStored(prepared: PreparedRequest, volume: Volume, error: unknown, signal: AbortSignal): Promise<never> {
    const problem = `error saving volume ${prepared.request.name}: ${messageOf(error)}`
    if (isStatus(error, 'Invalid')) await this.#refuse(prepared, volume, problem, signal)
    throw new ProvisioningError('background', problem, error)
  }

  async #failed(claim: Claim, storageClass: Frozen<StorageClass>, error: unknown, signal: AbortSignal): Promise<Result | undefined> {
    const { events, clock, options } = this.#deps
    const { uid = '' } = claim.metadata
    const state = error instanceof ProvisioningError ? error.state : 'unchanged'
    if (state === 'finished' || state === 'reschedule') this.#end(uid)
    if (error instanceof ProvisioningError && isInfeasible(error.cause)) {
      const message = `Volume provisioning failed with infeasible error. Retries will be delayed. ${error.message}`
      events.event(claim, 'Warning', 'ProvisioningFailed', message)
      this.#refused.set(uid, { untilMs: clock.monotonicMs() + options.retryMaxMs, classUid: storageClass.metadata.uid })
      return { requeueAfterMs: options.retryMaxMs }
    }
    events.event(claim, 'Warning', 'ProvisioningFailed', messageOf(error))
    if (state !== 'reschedule' || selectedNodeOf(claim) === undefined) throw error
    await this.#reschedule(claim, signal)
    return undefined
  }

  /** Without the annotation the scheduler selects a node again. */
  async #reschedule({ metadata }: Claim, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', resourceVersion } = metadata
    const annotations = { [volumeAnnotations.selectedNode]: null }
    await this.#deps.claims.patch({ namespace, name }, 'merge', { metadata: { resourceVersion, annotations } }, { signal })
  }
}
