/** Gives volumes the parameters of the VolumeAttributesClass that their claims name (L3). Upstream: external-resizer, pkg/modifycontroller. */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import { persistentVolumeClaims, persistentVolumes, volumeAttributesClasses } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { Result } from '#controllers/framework/reconciler'
import { GrpcError } from '#grpc/grpcError'
import type { CsiContext } from '../context.ts'
import { claimParameters } from '../provisioner/parameters.ts'
import { secretAnnotations } from '../provisioner/provisionedVolume.ts'
import { credentialsOf } from '../secrets.ts'
import { isFinal } from './callOutcome.ts'
import { modifyConditions, withoutModification } from './claimConditions.ts'
import { defaultTimeoutMs } from './expanding.ts'

type Claim = Frozen<PersistentVolumeClaim>
type Volume = Frozen<PersistentVolume>

const targetOf = ({ status }: Claim) => status.modifyVolumeStatus?.targetVolumeAttributesClassName ?? ''

export class Modifying {
  readonly #context: CsiContext
  readonly #events: EventRecorder
  readonly #claims: ResourceClient<PersistentVolumeClaim>
  /** Claims whose last modification is known not to be under way. After a start, none is: the target stays until the driver has answered. */
  readonly #certain = new Set<string>()
  /** Until when a modification that cannot work is not tried again. */
  readonly #slow = new Map<string, number>()

  constructor(context: CsiContext, events: EventRecorder) {
    this.#context = context
    this.#events = events
    this.#claims = readYourWrites(context.client.of(persistentVolumeClaims), context.informers.of(persistentVolumeClaims), context.clock)
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const { clock, driver, informers } = this.#context
    const claim = informers.of(persistentVolumeClaims).store.get(key)
    if (!claim) this.#forget(key)
    if (!claim?.spec.volumeName || claim.status.phase !== 'Bound') return undefined
    const volume = informers.of(persistentVolumes).store.get(claim.spec.volumeName)
    if (!volume) throw new Error(`Get PV "${claim.spec.volumeName}" of pvc "${key}" in PVInformer cache failed`)
    if (volume.spec.csi?.driver !== driver.name) return undefined
    const wanted = claim.spec.volumeAttributesClassName ?? ''
    const last = claim.status.modifyVolumeStatus
    if (wanted !== targetOf(claim)) this.#slow.delete(key)
    if (!last && wanted === (claim.status.currentVolumeAttributesClassName ?? '')) return this.#forget(key)
    const waitMs = (this.#slow.get(key) ?? 0) - clock.monotonicMs()
    if (waitMs > 0) return { requeueAfterMs: waitMs }
    const isInProgress = last?.status === 'InProgress'
    if (wanted === '' && !isInProgress) return this.#cancel(claim, signal)
    if (isInProgress && (wanted === '' || !this.#certain.has(key))) await this.#modify(claim, volume, targetOf(claim), signal)
    else await this.#begin(claim, volume, wanted, signal)
    return undefined
  }

  #forget(key: string): undefined {
    this.#certain.delete(key)
    this.#slow.delete(key)
  }

  async #patch(claim: Claim, status: object, signal: AbortSignal): Promise<Claim> {
    const { namespace, name = '', resourceVersion } = claim.metadata
    return this.#claims.patch({ namespace, name }, 'merge', { metadata: { resourceVersion }, status }, { subresource: 'status', signal })
  }

  #conditions(claim: Claim, message: string, error?: GrpcError) {
    const failure = error ? [{ type: 'ModifyVolumeError', status: 'True', reason: error.grpcStatus, message: error.description }] : []
    return modifyConditions(claim, [{ type: 'ModifyingVolume', status: 'True', message }, ...failure], formatTime(this.#context.clock.now()))
  }

  /** The claim names no class any more, and nothing is under way. */
  async #cancel(claim: Claim, signal: AbortSignal): Promise<undefined> {
    const conditions = claim.status.conditions?.filter(({ type }) => type !== 'ModifyingVolume')
    if (conditions?.length === claim.status.conditions?.length) return
    this.#events.event(claim, 'Normal', 'VolumeModifyCanceled', 'Cancelled modify.')
    await this.#patch(claim, { conditions }, signal)
  }

  async #begin(claim: Claim, volume: Volume, wanted: string, signal: AbortSignal): Promise<void> {
    if (!this.#classOf(claim, wanted)) {
      if (claim.status.modifyVolumeStatus?.status !== 'Pending') await this.#patch(claim, { modifyVolumeStatus: { status: 'Pending' } }, signal)
      return
    }
    const modifyVolumeStatus = { status: 'InProgress', targetVolumeAttributesClassName: wanted }
    const conditions = this.#conditions(claim, `Modifying volume to "${wanted}" is in progress.`)
    const marked = await this.#patch(claim, { modifyVolumeStatus, conditions }, signal)
    this.#events.event(claim, 'Normal', 'VolumeModify', `external resizer is modifying volume ${claim.metadata.name} with vac ${wanted}`)
    await this.#modify(marked, volume, wanted, signal)
  }

  #classOf(claim: Claim, name: string) {
    const found = this.#context.informers.of(volumeAttributesClasses).store.get(name)
    if (!found) this.#events.event(claim, 'Warning', 'VolumeModifyFailed', `VAC "${name}" does not exist.`)
    return found
  }

  async #modify(claim: Claim, volume: Volume, target: string, signal: AbortSignal): Promise<void> {
    const found = this.#classOf(claim, target)
    if (!found) throw new Error(`get VAC with vac name ${target} in VACInformer cache failed`)
    try {
      await this.#callDriver(claim, volume, found.parameters ?? {}, signal)
    } catch (error) {
      signal.throwIfAborted()
      await this.#recordFailure(claim, target, error, signal)
      throw error
    }
    // The volume first: a claim without a modification is not looked at again.
    const { name = '' } = volume.metadata
    await this.#context.client.of(persistentVolumes).patch({ name }, 'merge', { spec: { volumeAttributesClassName: target } }, { signal })
    const done = { modifyVolumeStatus: null, currentVolumeAttributesClassName: target, conditions: withoutModification(claim) }
    await this.#patch(claim, done, signal)
    this.#forget(keyOf(claim))
    this.#events.event(claim, 'Normal', 'VolumeModifySuccessful', `external resizer modified volume ${claim.metadata.name} with vac ${target} successfully`)
  }

  async #callDriver(claim: Claim, { metadata, spec }: Volume, parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
    const { client, connection, options } = this.#context
    const name = metadata.annotations?.[secretAnnotations.modification.name]
    const namespace = metadata.annotations?.[secretAnnotations.modification.namespace]
    const secrets = await credentialsOf(client, name && namespace ? { name, namespace } : undefined, signal)
    const about = options.extraCreateMetadata ? claimParameters(claim.metadata, metadata.name ?? '') : {}
    const request = { volumeId: spec.csi?.volumeHandle ?? '', secrets, mutableParameters: { ...parameters, ...about } }
    await connection.call('controllerModifyVolume', request, options.timeoutMs ?? defaultTimeoutMs, signal)
  }

  async #recordFailure(claim: Claim, target: string, error: unknown, signal: AbortSignal): Promise<void> {
    if (!(error instanceof GrpcError)) return
    const { clock, options } = this.#context
    const key = keyOf(claim)
    const isInfeasible = error.code === 'INVALID_ARGUMENT'
    if (isFinal(error)) this.#certain.add(key)
    else this.#certain.delete(key)
    if (isInfeasible) this.#slow.set(key, clock.monotonicMs() + options.retryMaxMs)
    const message = `Modifying volume to "${target}" ${isFinal(error) ? 'failed. Waiting for retry.' : 'is still in progress.'}`
    const modifyVolumeStatus = { status: isInfeasible ? 'Infeasible' : 'InProgress' }
    await this.#patch(claim, { modifyVolumeStatus, conditions: this.#conditions(claim, message, error) }, signal)
    this.#events.event(claim, 'Warning', 'VolumeModifyFailed', `${messageOf(error)}${isFinal(error) ? '' : `. Still modifying to VAC ${target}`}`)
  }
}
