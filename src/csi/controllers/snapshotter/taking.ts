/**
 * Takes and deletes the snapshots of VolumeSnapshotContents (L3). While the driver may be taking a snapshot, the content says so, and stays until the driver has
 * answered, so that no snapshot is left behind. Snapshots of a group are taken and deleted with it. Upstream: external-snapshotter, pkg/sidecar-controller.
 */
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import type { Snapshot, TextMap } from '../../server/csiTypes.ts'
import type { CsiContext } from '../context.ts'
import { reservedPrefix } from '../provisioner/parameters.ts'
import { isFinal } from '../resizer/callOutcome.ts'
import { credentialsOf, secretReferenceOf } from '../secrets.ts'
import { DriverContents, driverParameters, NotReadyError } from './driverContents.ts'
import { annotations, finalizers, snapshotSecretKeys } from './snapshotNames.ts'
import { type VolumeSnapshotClass, type VolumeSnapshotContent, volumeSnapshotClasses, volumeSnapshotContents } from './snapshotTypes.ts'

type Content = Frozen<VolumeSnapshotContent>

export class Taking {
  readonly #context: CsiContext
  readonly #contents: DriverContents<VolumeSnapshotContent>

  constructor(context: CsiContext) {
    this.#context = context
    this.#contents = new DriverContents(context, volumeSnapshotContents, { ...annotations, finalizer: finalizers.content })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    const content = this.#contents.get(name)
    if (!content || !this.#contents.isOwn(content, this.#foundClass(content)?.driver)) return
    const { spec, status, metadata } = content
    if (this.#contents.mustBeDeleted(content, spec.source.snapshotHandle !== undefined && !spec.volumeSnapshotRef.uid)) return this.#delete(content, signal)
    if (status?.readyToUse) {
      await this.#contents.setCreating(content, false, signal)
      return
    }
    const handle = spec.source.snapshotHandle ?? (status?.volumeGroupSnapshotHandle === undefined ? undefined : status.snapshotHandle)
    // It is taken with its group.
    if (handle === undefined && metadata.annotations?.[annotations.group] !== undefined) return
    const isFirst = handle === undefined && status === undefined
    try {
      const snapshot = handle === undefined ? await this.#take(content, signal) : await this.#lookUp(content, handle, signal)
      await this.#save(content, snapshot, signal)
      await this.#contents.setCreating(content, false, signal)
      // A content that is being deleted was waiting for the answer.
      if (!snapshot.readyToUse || metadata.deletionTimestamp !== undefined) throw new NotReadyError(`snapshot ${snapshot.snapshotId} is not ready`)
    } catch (error) {
      if (!signal.aborted && !(error instanceof NotReadyError)) await this.#showFailure(content, isFirst, error, signal)
      throw error
    }
  }

  async #take(content: Content, signal: AbortSignal): Promise<Snapshot> {
    const { connection, options } = this.#context
    const { name = '' } = content.metadata
    const { source, volumeSnapshotRef: reference } = content.spec
    const sourceVolumeId = source.volumeHandle ?? ''
    if (!reference.uid) throw new Error(`cannot create snapshot. Snapshot content ${name} not bound to a snapshot`)
    const { parameters = {} } = this.#classOf(content)
    const sent = driverParameters(parameters)
    const secrets = await this.#contents.secretsOf(content, signal)
    await this.#contents.setCreating(content, true, signal)
    const about = {
      [`${reservedPrefix}volumesnapshot/name`]: reference.name ?? '',
      [`${reservedPrefix}volumesnapshot/namespace`]: reference.namespace ?? '',
      [`${reservedPrefix}volumesnapshotcontent/name`]: name,
    }
    const request = { name: `snapshot-${reference.uid}`, sourceVolumeId, parameters: options.extraCreateMetadata ? { ...sent, ...about } : sent, secrets }
    try {
      const { snapshot } = (await connection.call('createSnapshot', request, this.#contents.timeoutMs, signal)) as { snapshot: Snapshot | null }
      if (snapshot?.snapshotId) return snapshot
      throw new Error('the driver answered CreateSnapshot without a snapshot id')
    } catch (error) {
      signal.throwIfAborted()
      if (isFinal(error)) await this.#contents.setCreating(content, false, signal)
      throw new Error(`failed to take snapshot of the volume ${sourceVolumeId}: ${JSON.stringify(messageOf(error))}`, { cause: error })
    }
  }

  #foundClass({ spec }: Content): Frozen<VolumeSnapshotClass> | undefined {
    return this.#context.informers.of(volumeSnapshotClasses).store.get(spec.volumeSnapshotClassName ?? '')
  }

  #classOf(content: Content): Frozen<VolumeSnapshotClass> {
    const { volumeSnapshotClassName: name } = content.spec
    if (name === undefined) throw new Error(`failed to take snapshot ${content.metadata.name} without a snapshot class`)
    const found = this.#foundClass(content)
    if (!found) throw new Error(`volumesnapshotclass.snapshot.storage.k8s.io "${name}" not found`)
    return found
  }

  /** A driver that does not list snapshots is taken at its word: the snapshot exists. */
  async #lookUp(content: Content, snapshotId: string, signal: AbortSignal): Promise<Snapshot> {
    const { clock, connection, driver } = this.#context
    const now = { seconds: Math.floor(clock.now() / 1000), nanos: 0 }
    if (!driver.controller.has('LIST_SNAPSHOTS')) return { snapshotId, sourceVolumeId: '', sizeBytes: 0, creationTime: now, readyToUse: true }
    const secrets = await this.#listSecrets(content, signal)
    const { entries } = await connection.call('listSnapshots', { snapshotId, secrets }, this.#contents.timeoutMs, signal)
    const found = entries[0]?.snapshot
    if (found?.snapshotId === snapshotId) return found
    throw new Error(`failed to list snapshot for content ${content.metadata.name}: "can not find snapshot for snapshotID ${snapshotId}"`)
  }

  /** Content of a group has no class. */
  #listSecrets(content: Content, signal: AbortSignal): Promise<TextMap> {
    if (content.status?.volumeGroupSnapshotHandle !== undefined) return this.#contents.secretsOf(content, signal)
    const parameters = content.spec.volumeSnapshotClassName === undefined ? {} : (this.#classOf(content).parameters ?? {})
    const contentName = new Map([['volumesnapshotcontent.name', content.metadata.name ?? '']])
    const secret = secretReferenceOf(parameters, snapshotSecretKeys.list, snapshotSecretKeys.list, { forName: contentName, forNamespace: contentName })
    return credentialsOf(this.#context.client, secret, signal)
  }

  async #save(content: Content, { snapshotId, sizeBytes, creationTime: created, readyToUse, groupSnapshotId }: Snapshot, signal: AbortSignal): Promise<void> {
    const { status } = content
    const creationTime = created ? created.seconds * 1e9 + created.nanos : this.#context.clock.now() * 1e6
    const next = {
      snapshotHandle: status?.snapshotHandle ?? snapshotId,
      creationTime: status?.creationTime ?? creationTime,
      ...(sizeBytes > 0 && status?.restoreSize === undefined ? { restoreSize: sizeBytes } : {}),
      ...(groupSnapshotId && status?.volumeGroupSnapshotHandle === undefined ? { volumeGroupSnapshotHandle: groupSnapshotId } : {}),
      readyToUse,
      ...(readyToUse ? { error: null } : {}),
    }
    await this.#contents.patchStatus(content, next, signal)
  }

  #showFailure(content: Content, isFirst: boolean, error: unknown, signal: AbortSignal): Promise<void> {
    const [reason, what] = isFirst
      ? (['SnapshotCreationFailed', 'create snapshot'] as const)
      : (['SnapshotContentCheckandUpdateFailed', 'check and update snapshot content'] as const)
    return this.#contents.showFailure(content, reason, `Failed to ${what}: ${messageOf(error)}`, signal)
  }

  #delete(content: Content, signal: AbortSignal): Promise<undefined> {
    const { spec, status } = content
    const snapshotId = spec.deletionPolicy === 'Delete' && status?.volumeGroupSnapshotHandle === undefined ? status?.snapshotHandle : undefined
    const call = async () => {
      const secrets = await this.#contents.secretsOf(content, signal)
      await this.#context.connection.call('deleteSnapshot', { snapshotId: snapshotId ?? '', secrets }, this.#contents.timeoutMs, signal)
    }
    const cleared = ['snapshotHandle', 'readyToUse', 'creationTime', 'restoreSize']
    const removal = { reason: 'SnapshotDeleteError', failure: 'Failed to delete snapshot', cleared, call }
    return this.#contents.delete(content, snapshotId === undefined ? undefined : removal, signal)
  }
}
