/**
 * Publishes volumes to nodes and takes them back, as VolumeAttachments say (L3). With a driver that publishes nothing each attachment is attached at once.
 * Upstream: external-attacher, pkg/controller.
 */
import type { CSIPersistentVolumeSource, PersistentVolume } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import { csiNodes, persistentVolumes, volumeAttachments } from '#client/builtIn'
import { createReconciler, enqueueSelf, everyPeriod, type Reconciler } from '#controllers/framework/reconciler'
import { isProtected } from '#controllers/shared/protection'
import { GrpcError, statusNames } from '#grpc/grpcError'
import { type CsiContext, retryLimiter } from './context.ts'
import { setFinalizer } from './finalizers.ts'
import { publishedNodes } from './publishedNodes.ts'
import { sanitizedName } from './sanitizedName.ts'
import { credentialsOf } from './secrets.ts'
import { volumeCapabilityOf } from './volumeCapability.ts'

type Attachment = Frozen<VolumeAttachment>
type VolumeSpec = Frozen<PersistentVolume>['spec']

const defaultTimeoutMs = 15_000
const defaultWorkers = 10
const nodeIdAnnotation = 'csi.alpha.kubernetes.io/node-id'
const volumeIndex = 'csiVolumeOfAttachment'

export const attacherFinalizer = (driver: string) => `external-attacher/${sanitizedName(driver)}`

export function createAttacher(context: CsiContext): Component {
  const { driver, informers, options } = context
  const name = `${driver.name} attacher`
  const settings = { name, workers: options.workers ?? defaultWorkers }
  const attachments = informers.of(volumeAttachments)
  attachments.addIndexers({ [volumeIndex]: ({ spec }) => [spec.source.persistentVolumeName ?? ''] })
  const publishes = driver.controller.has('PUBLISH_UNPUBLISH_VOLUME')
  const attaching = new Attaching(context)
  const attachmentSync = createReconciler(context, {
    ...settings,
    queueName: 'csi-attacher-va',
    rateLimiter: retryLimiter(context),
    reconcile: (key, signal) => (publishes ? attaching.reconcile(key, signal) : attaching.markAttached(key, signal)),
  })
  const enqueue = (attachment: Attachment) => {
    if (attachment.spec.attacher === driver.name) attachmentSync.queue.add(attachment.metadata.name ?? '')
  }
  attachmentSync.watch(attachments, { onAdd: enqueue, onUpdate: (old, now) => mayMatter(old, now) && enqueue(now) })
  if (!publishes) return attachmentSync
  attachmentSync.needs(informers.of(persistentVolumes))
  attachmentSync.needs(informers.of(csiNodes))
  if (driver.controller.has('LIST_VOLUMES_PUBLISHED_NODES'))
    attachmentSync.also((signal) =>
      everyPeriod(context, name, options.compareMs, () => attaching.compare((key) => attachmentSync.queue.add(key), signal), signal),
    )
  const volumeSync = createVolumeSync(context, settings)
  return { name, run: async (signal) => void (await Promise.all([attachmentSync.run(signal), volumeSync.run(signal)])) }
}

/** An error that the attacher itself has written does not count: it would end the wait for the next try. */
function mayMatter(old: Attachment, now: Attachment): boolean {
  const bare = ({ metadata, spec, status }: Attachment) => {
    const { resourceVersion: _version, managedFields: _managers, ...kept } = metadata
    return { metadata: kept, spec, attached: status?.attached, attachmentMetadata: status?.attachmentMetadata }
  }
  return old.metadata.resourceVersion === now.metadata.resourceVersion || !semanticEqual(bare(old), bare(now))
}

/** Frees deleted volumes that no attachment uses any more. */
function createVolumeSync(context: CsiContext, settings: { readonly name: string; readonly workers: number }): Reconciler {
  const { client, driver, informers } = context
  const finalizer = attacherFinalizer(driver.name)
  const attachments = informers.of(volumeAttachments)
  const volumes = informers.of(persistentVolumes)
  const sync = createReconciler(context, {
    ...settings,
    queueName: 'csi-attacher-pv',
    rateLimiter: retryLimiter(context),
    reconcile: async (key, signal) => {
      const volume = volumes.store.get(key)
      if (!volume?.metadata.deletionTimestamp || attachments.store.countByIndex(volumeIndex, key) > 0) return undefined
      await setFinalizer(client.of(persistentVolumes), volume, finalizer, false, signal)
      return undefined
    },
  })
  sync.watch(volumes, { ...enqueueSelf(sync.queue, ({ metadata }) => metadata.deletionTimestamp !== undefined), onDelete: () => {} })
  sync.watch(attachments, { onDelete: ({ spec }) => spec.source.persistentVolumeName !== undefined && sync.queue.add(spec.source.persistentVolumeName) })
  return sync
}

/** What the driver needs for a call about an attachment. */
interface Target {
  readonly source: Frozen<CSIPersistentVolumeSource>
  readonly spec: VolumeSpec
  readonly secrets: Readonly<Record<string, string>>
}

class Attaching {
  readonly #context: CsiContext
  readonly #finalizer: string
  readonly #timeoutMs: number
  /** Attachments whose state differs from what the driver lists: they are published or taken back once more. */
  readonly #forced = new Set<string>()

  constructor(context: CsiContext) {
    this.#context = context
    this.#finalizer = attacherFinalizer(context.driver.name)
    this.#timeoutMs = context.options.timeoutMs ?? defaultTimeoutMs
  }

  async markAttached(key: string, signal: AbortSignal): Promise<undefined> {
    const attachment = this.#attachment(key)
    if (attachment && !attachment.status?.attached) await this.#patchStatus(attachment, { attached: true, attachError: null }, signal)
  }

  async reconcile(key: string, signal: AbortSignal): Promise<undefined> {
    const attachment = this.#attachment(key)
    const isForced = this.#forced.delete(key)
    if (!attachment) return
    if (attachment.metadata.deletionTimestamp === undefined) {
      if (isForced || !attachment.status?.attached) await this.#recorded(attachment, 'attachError', this.#attach(attachment, signal), signal)
    } else if (isForced || isProtected(attachment, this.#finalizer)) {
      await this.#recorded(attachment, 'detachError', this.#detach(attachment, signal), signal)
    }
  }

  /** Queues attachments of which the driver lists something else. */
  async compare(add: (key: string) => void, signal: AbortSignal): Promise<void> {
    const { connection, driver, informers, log } = this.#context
    const published = await publishedNodes(connection, this.#timeoutMs, signal)
    for (const attachment of informers.of(volumeAttachments).store.list()) {
      const nodeId = this.#nodeId(attachment) ?? attachment.metadata.annotations?.[nodeIdAnnotation]
      const handle = this.#specOf(attachment)?.csi?.volumeHandle
      if (attachment.spec.attacher !== driver.name || nodeId === undefined || handle === undefined) continue
      if ((published.get(handle)?.has(nodeId) ?? false) === (attachment.status?.attached ?? false)) continue
      const { name = '' } = attachment.metadata
      log.warn('The driver lists another state than the attachment has', { attachment: name })
      this.#forced.add(name)
      add(name)
    }
  }

  #attachment(key: string): Attachment | undefined {
    return this.#context.informers.of(volumeAttachments).store.get(key)
  }

  async #recorded(attachment: Attachment, field: 'attachError' | 'detachError', work: Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await work
    } catch (error) {
      if (!signal.aborted && !isStatus(error, 'Conflict')) await this.#saveError(attachment, field, error, signal)
      throw error
    }
  }

  async #saveError(attachment: Attachment, field: 'attachError' | 'detachError', error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#context
    const errorCode = field === 'attachError' && error instanceof GrpcError ? { errorCode: statusNames.indexOf(error.code) } : {}
    const saved = { [field]: { message: messageOf(error), time: formatTime(clock.now()), ...errorCode } }
    await this.#patchStatus(attachment, saved, signal).catch((failure: unknown) => {
      log.warn('An error of the driver could not be saved', { attachment: attachment.metadata.name, error: messageOf(failure) })
    })
  }

  async #patchStatus({ metadata }: Attachment, status: object, signal: AbortSignal): Promise<void> {
    await this.#context.client.of(volumeAttachments).patch({ name: metadata.name ?? '' }, 'merge', { status }, { subresource: 'status', signal })
  }

  /** What can be refused is refused before the finalizer is there: it would keep the attachment. */
  async #attach(attachment: Attachment, signal: AbortSignal): Promise<void> {
    const { client, connection, driver, options } = this.#context
    await this.#holdVolume(attachment, signal)
    const { source, spec, secrets } = await this.#target(attachment, signal)
    const knowsSingleNodeModes = driver.controller.has('SINGLE_NODE_MULTI_WRITER')
    const facts = { volumeMode: spec.volumeMode, fsType: source.fsType || options.defaultFsType, mountOptions: spec.mountOptions ?? [], knowsSingleNodeModes }
    const volumeCapability = volumeCapabilityOf(spec.accessModes ?? [], facts)
    const nodeId = this.#nodeId(attachment)
    if (nodeId === undefined) throw this.#noNode(attachment)
    await setFinalizer(client.of(volumeAttachments), attachment, this.#finalizer, true, signal, { annotations: { [nodeIdAnnotation]: nodeId } })
    const readonly = source.readOnly === true && driver.controller.has('PUBLISH_READONLY')
    const request = { volumeId: source.volumeHandle, nodeId, volumeCapability, readonly, secrets, volumeContext: source.volumeAttributes ?? {} }
    const { publishContext } = await connection.call('controllerPublishVolume', request, this.#timeoutMs, signal)
    await this.#patchStatus(attachment, { attached: true, attachmentMetadata: publishContext ?? {}, attachError: null }, signal)
  }

  /** The volume's object stays while it is attached. */
  async #holdVolume({ spec }: Attachment, signal: AbortSignal): Promise<void> {
    const { client, informers } = this.#context
    const name = spec.source.persistentVolumeName
    const volume = name === undefined ? undefined : informers.of(persistentVolumes).store.get(name)
    if (volume?.metadata.deletionTimestamp !== undefined) throw new Error(`PersistentVolume "${name}" is marked for deletion`)
    if (volume) await setFinalizer(client.of(persistentVolumes), volume, this.#finalizer, true, signal)
  }

  async #detach(attachment: Attachment, signal: AbortSignal): Promise<void> {
    const { client, connection } = this.#context
    const { source, secrets } = await this.#target(attachment, signal)
    const nodeId = this.#nodeId(attachment) ?? attachment.metadata.annotations?.[nodeIdAnnotation]
    if (nodeId === undefined) throw this.#noNode(attachment)
    await connection.call('controllerUnpublishVolume', { volumeId: source.volumeHandle, nodeId, secrets }, this.#timeoutMs, signal)
    // The other way round, a crash between both writes would have the volume taken back twice.
    try {
      const freed = await setFinalizer(client.of(volumeAttachments), attachment, this.#finalizer, false, signal)
      await this.#patchStatus(freed, { attached: false, attachmentMetadata: null, detachError: null }, signal)
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  }

  async #target(attachment: Attachment, signal: AbortSignal): Promise<Target> {
    const { persistentVolumeName: name, inlineVolumeSpec } = attachment.spec.source
    if (name !== undefined && inlineVolumeSpec) throw new Error('both InlineCSIVolumeSource and PersistentVolumeName specified in VA source')
    if (name === undefined && !inlineVolumeSpec) throw new Error('neither InlineCSIVolumeSource nor PersistentVolumeName specified in VA source')
    const spec = this.#specOf(attachment)
    if (!spec) throw new Error(`persistentvolume "${name}" not found`)
    if (!spec.csi) throw new Error(inlineVolumeSpec ? 'inline volume spec contains nil CSI source' : 'pv spec contained non-csi source that was not migrated')
    const { name: secretName = '', namespace = '' } = spec.csi.controllerPublishSecretRef ?? {}
    const reference = spec.csi.controllerPublishSecretRef ? { name: secretName, namespace } : undefined
    return { source: spec.csi, spec, secrets: await credentialsOf(this.#context.client, reference, signal) }
  }

  #specOf({ spec }: Attachment): VolumeSpec | undefined {
    const { persistentVolumeName: name, inlineVolumeSpec } = spec.source
    return name === undefined ? inlineVolumeSpec : this.#context.informers.of(persistentVolumes).store.get(name)?.spec
  }

  /** As the driver calls the node of the attachment. */
  #nodeId({ spec }: Attachment): string | undefined {
    const { driver, informers } = this.#context
    const drivers = informers.of(csiNodes).store.get(spec.nodeName)?.spec.drivers ?? []
    return drivers.find(({ name }) => name === driver.name)?.nodeID
  }

  #noNode({ spec }: Attachment): Error {
    const { driver, informers } = this.#context
    const isKnown = informers.of(csiNodes).store.get(spec.nodeName) !== undefined
    return new Error(isKnown ? `CSINode ${spec.nodeName} does not contain driver ${driver.name}` : `csinode.storage.k8s.io "${spec.nodeName}" not found`)
  }
}
