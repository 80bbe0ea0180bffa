/** Expands the volumes of claims that ask for more (L3), with the steps in the claim's status. Upstream: external-resizer, pkg/controller. */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { volumeAnnotations } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { compareQuantities, formatQuantity, quantityOf, quantityValue } from '#api/machinery/quantity'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { Result } from '#controllers/framework/reconciler'
import type { CsiContext } from '../context.ts'
import { credentialsOf } from '../secrets.ts'
import { volumeCapabilityOf } from '../volumeCapability.ts'
import { isFinal, isInfeasibleSize } from './callOutcome.ts'
import { resizeConditions } from './claimConditions.ts'
import { isBoundTo, needsExpansion, planExpansion, resizeStatusOf } from './expandPlan.ts'

type Claim = Frozen<PersistentVolumeClaim>
type Volume = Frozen<PersistentVolume>

export const defaultTimeoutMs = 10_000
const notAtNode = 'volume.kubernetes.io/node-expansion-not-required'

export class Expanding {
  readonly #context: CsiContext
  readonly #events: EventRecorder
  readonly #claims: ResourceClient<PersistentVolumeClaim>
  readonly #volumes: ResourceClient<PersistentVolume>
  /** Claims whose last expansion the driver has refused for good, by key. */
  readonly #failed = new Set<string>()
  /** Until when an expansion that cannot work is not tried again. */
  readonly #slow = new Map<string, number>()

  constructor(context: CsiContext, events: EventRecorder) {
    this.#context = context
    this.#events = events
    const { client, informers, clock } = context
    this.#claims = readYourWrites(client.of(persistentVolumeClaims), informers.of(persistentVolumeClaims), clock)
    this.#volumes = readYourWrites(client.of(persistentVolumes), informers.of(persistentVolumes), clock)
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const { clock, driver, informers, options } = this.#context
    const claim = informers.of(persistentVolumeClaims).store.get(key)
    if (!claim?.spec.volumeName) return this.#forget(key)
    const volume = informers.of(persistentVolumes).store.get(claim.spec.volumeName)
    if (!volume) throw new Error(`PV "${claim.spec.volumeName}" bound to pvc "${key}" not found`)
    if (volume.spec.csi?.driver !== driver.name) return undefined
    await this.#dropOldSize(claim, volume, signal)
    if (!needsExpansion(claim) || !isBoundTo(volume, claim)) return undefined
    const plan = planExpansion(claim, volume, this.#failed.has(key))
    if (!plan) return undefined
    const waitMs = (this.#slow.get(key) ?? 0) - clock.monotonicMs()
    if (plan.isKnown && waitMs > 0) return { requeueAfterMs: waitMs }
    if (resizeStatusOf(claim) === 'ControllerResizeInfeasible') this.#slow.set(key, clock.monotonicMs() + options.retryMaxMs)
    const marked = await this.#mark(claim, plan.size, plan.isKnown, signal)
    await this.#expand(marked, volume, plan.size, signal)
    return undefined
  }

  #forget(key: string): undefined {
    this.#failed.delete(key)
    this.#slow.delete(key)
  }

  /** The size of before is kept at the volume until the node has expanded the file system. */
  async #dropOldSize({ status }: Claim, { metadata, spec }: Volume, signal: AbortSignal): Promise<void> {
    const isDone = compareQuantities(status.capacity?.storage ?? '0', spec.capacity?.storage ?? '0') >= 0
    if (!isDone || metadata.annotations?.[volumeAnnotations.preResizeCapacity] === undefined) return
    const annotations = { [volumeAnnotations.preResizeCapacity]: null }
    await this.#volumes.patch({ name: metadata.name ?? '' }, 'merge', { metadata: { annotations } }, { signal })
  }

  #patch(claim: Claim, status: object, signal: AbortSignal, annotations?: object, isChecked = true): Promise<Claim> {
    const { namespace, name = '', resourceVersion } = claim.metadata
    const metadata = { ...(isChecked ? { resourceVersion } : {}), ...(annotations ? { annotations } : {}) }
    return this.#claims.patch({ namespace, name }, 'merge', { metadata, status }, { subresource: 'status', signal })
  }

  #condition(type: string, message?: string) {
    return { type, status: 'True', lastTransitionTime: formatTime(this.#context.clock.now()), ...(message === undefined ? {} : { message }) }
  }

  #mark(claim: Claim, size: string, isKnown: boolean, signal: AbortSignal): Promise<Claim> {
    const conditions = resizeConditions(claim, [this.#condition('Resizing')], isKnown)
    const statuses = isKnown ? {} : { allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' } }
    return this.#patch(claim, { conditions, allocatedResources: { storage: size }, ...statuses }, signal, { [notAtNode]: null })
  }

  async #expand(claim: Claim, volume: Volume, size: string, signal: AbortSignal): Promise<void> {
    const key = keyOf(claim)
    const { name = '' } = volume.metadata
    this.#events.event(claim, 'Normal', 'Resizing', `External resizer is resizing volume ${name}`)
    try {
      const { capacityBytes, nodeExpansionRequired } = await this.#callDriver(volume, size, signal)
      this.#forget(key)
      await this.#finish(claim, volume, capacityBytes, nodeExpansionRequired, signal)
    } catch (error) {
      signal.throwIfAborted()
      await this.#recordFailure(claim, error, signal)
      const message = `resize volume "${name}" by resizer "${this.#context.driver.name}" failed: ${messageOf(error)}`
      this.#events.event(claim, 'Warning', 'VolumeResizeFailed', message)
      throw new Error(message, { cause: error })
    }
  }

  async #callDriver({ spec }: Volume, size: string, signal: AbortSignal) {
    const { client, connection, driver, options } = this.#context
    const requiredBytes = quantityValue(size)
    if (driver.expandsOnNodes) return { capacityBytes: requiredBytes, nodeExpansionRequired: true }
    const { volumeHandle = '', fsType = '', controllerExpandSecretRef: secret } = spec.csi ?? {}
    const secrets = await credentialsOf(client, secret && { name: secret.name ?? '', namespace: secret.namespace ?? '' }, signal)
    const knowsSingleNodeModes = driver.controller.has('SINGLE_NODE_MULTI_WRITER')
    const facts = { volumeMode: spec.volumeMode, fsType, mountOptions: spec.mountOptions ?? [], knowsSingleNodeModes }
    const volumeCapability = volumeCapabilityOf(spec.accessModes ?? [], facts)
    const request = { volumeId: volumeHandle, capacityRange: { requiredBytes, limitBytes: 0 }, secrets, volumeCapability }
    const answer = await connection.call('controllerExpandVolume', request, options.timeoutMs ?? defaultTimeoutMs, signal)
    if (answer.capacityBytes >= requiredBytes) return answer
    throw new Error(`the driver expanded the volume to ${answer.capacityBytes} bytes instead of ${requiredBytes}`)
  }

  async #finish(claim: Claim, volume: Volume, capacityBytes: number, isPendingAtNode: boolean, signal: AbortSignal): Promise<void> {
    const storage = formatQuantity(quantityOf(capacityBytes, 'BinarySI'))
    const { name = '', annotations } = volume.metadata
    const isFirst = isPendingAtNode && annotations?.[volumeAnnotations.preResizeCapacity] === undefined
    const metadata = isFirst ? { annotations: { [volumeAnnotations.preResizeCapacity]: claim.status.capacity?.storage ?? '0' } } : {}
    await this.#volumes.patch({ name }, 'merge', { metadata, spec: { capacity: { storage } } }, { signal })
    if (isPendingAtNode) {
      const message = 'Waiting for user to (re-)start a pod to finish file system resize of volume on node.'
      const conditions = resizeConditions(claim, [this.#condition('FileSystemResizePending', message)], true)
      await this.#patch(claim, { conditions, allocatedResourceStatuses: { storage: 'NodeResizePending' } }, signal, { [notAtNode]: null })
      this.#events.event(claim, 'Normal', 'FileSystemResizeRequired', 'Require file system resize of volume on node')
      return
    }
    const status = { capacity: { storage }, conditions: resizeConditions(claim, [], false), allocatedResourceStatuses: { storage: null } }
    await this.#patch(claim, status, signal, { [notAtNode]: 'true' })
    this.#events.event(claim, 'Normal', 'VolumeResizeSuccessful', 'Resize volume succeeded')
  }

  /** Without a check of the version: the outcome holds whatever else has changed. */
  async #recordFailure(claim: Claim, error: unknown, signal: AbortSignal): Promise<void> {
    const key = keyOf(claim)
    this.#failed.delete(key)
    if (!isInfeasibleSize(error)) this.#slow.delete(key)
    if (!isFinal(error)) return
    this.#failed.add(key)
    const conditions = resizeConditions(claim, [this.#condition('ControllerResizeError', `failed to expand pvc with ${messageOf(error)}`)], true)
    const statuses = isInfeasibleSize(error) ? { allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' } } : {}
    await this.#patch(claim, { conditions, ...statuses }, signal, undefined, false)
  }
}
