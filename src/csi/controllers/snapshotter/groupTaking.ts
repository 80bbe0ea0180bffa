/**
 * Takes and deletes the snapshots of several volumes at one moment, for VolumeGroupSnapshotContents (L3). The content lists the snapshots; groupBinding.ts makes
 * objects of them. Upstream: external-snapshotter, pkg/sidecar-controller/groupsnapshot_helper.go.
 */
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import type { Snapshot, TextMap, Timestamp, VolumeGroupSnapshot } from '../../server/csiTypes.ts'
import type { CsiContext } from '../context.ts'
import { reservedPrefix } from '../provisioner/parameters.ts'
import { isFinal } from '../resizer/callOutcome.ts'
import { credentialsOf, secretReferenceOf } from '../secrets.ts'
import { DriverContents, driverParameters, NotReadyError } from './driverContents.ts'
import {
  groupSnapshotGroup,
  type MemberInfo,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
  volumeGroupSnapshotClasses,
  volumeGroupSnapshotContents,
} from './groupTypes.ts'
import { finalizers, groupAnnotations, snapshotSecretKeys } from './snapshotNames.ts'

type Content = Frozen<VolumeGroupSnapshotContent>

const nanosecondsOf = ({ seconds, nanos }: Timestamp) => seconds * 1e9 + nanos

export class GroupTaking {
  readonly #context: CsiContext
  readonly #contents: DriverContents<VolumeGroupSnapshotContent>

  constructor(context: CsiContext) {
    this.#context = context
    this.#contents = new DriverContents(context, volumeGroupSnapshotContents, { ...groupAnnotations, finalizer: finalizers.groupContent })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    const content = this.#contents.get(name)
    if (!content || !this.#contents.isOwn(content, this.#foundClass(content)?.driver)) return
    const { spec, status, metadata } = content
    const given = spec.source.groupSnapshotHandles
    if (this.#contents.mustBeDeleted(content, given !== undefined && !spec.volumeGroupSnapshotRef.uid)) return this.#delete(content, signal)
    if (status?.readyToUse) {
      await this.#contents.setCreating(content, false, signal)
      return
    }
    try {
      const group = given ? await this.#lookUp(content, signal) : await this.#take(content, signal)
      await this.#save(content, group, given ? [] : group.snapshots, signal)
      await this.#contents.setCreating(content, false, signal)
      // A content that is being deleted was waiting for the answer.
      if (!group.readyToUse || metadata.deletionTimestamp !== undefined) throw new NotReadyError(`group snapshot ${group.groupSnapshotId} is not ready`)
    } catch (error) {
      if (!signal.aborted && !(error instanceof NotReadyError)) await this.#showFailure(content, !given && status === undefined, error, signal)
      throw error
    }
  }

  async #take(content: Content, signal: AbortSignal): Promise<VolumeGroupSnapshot> {
    const { connection, options } = this.#context
    const { name = '' } = content.metadata
    const { source, volumeGroupSnapshotRef: reference } = content.spec
    const sourceVolumeIds = source.volumeHandles ?? []
    if (!reference.uid) throw new Error(`cannot create group snapshot. Group snapshot content ${name} not bound to a group snapshot`)
    const { parameters = {} } = this.#classOf(content)
    const sent = driverParameters(parameters)
    const secrets = await this.#contents.secretsOf(content, signal)
    await this.#contents.setCreating(content, true, signal)
    const about = {
      [`${reservedPrefix}volumegroupsnapshot/name`]: reference.name ?? '',
      [`${reservedPrefix}volumegroupsnapshot/namespace`]: reference.namespace ?? '',
      [`${reservedPrefix}volumegroupsnapshotcontent/name`]: name,
    }
    const request = { name: `groupsnapshot-${reference.uid}`, sourceVolumeIds, parameters: options.extraCreateMetadata ? { ...sent, ...about } : sent, secrets }
    try {
      return groupOf(await connection.call('createVolumeGroupSnapshot', request, this.#contents.timeoutMs, signal))
    } catch (error) {
      signal.throwIfAborted()
      if (isFinal(error)) await this.#contents.setCreating(content, false, signal)
      throw new Error(`failed to take group snapshot of the volumes [${sourceVolumeIds.join(' ')}]: ${JSON.stringify(messageOf(error))}`, { cause: error })
    }
  }

  async #lookUp(content: Content, signal: AbortSignal): Promise<VolumeGroupSnapshot> {
    const { volumeGroupSnapshotHandle: groupSnapshotId = '', volumeSnapshotHandles: snapshotIds = [] } = content.spec.source.groupSnapshotHandles ?? {}
    const { name = '' } = content.metadata
    if (snapshotIds.length === 0) throw new Error(`cannot list group snapshot ${name}. No snapshots found in the group snapshot content`)
    const secrets = await this.#getSecrets(content, signal)
    try {
      return groupOf(await this.#context.connection.call('getVolumeGroupSnapshot', { groupSnapshotId, snapshotIds, secrets }, this.#contents.timeoutMs, signal))
    } catch (error) {
      signal.throwIfAborted()
      throw new Error(`failed to list group snapshot for group snapshot content ${name}: ${JSON.stringify(messageOf(error))}`, { cause: error })
    }
  }

  #getSecrets(content: Content, signal: AbortSignal): Promise<TextMap> {
    const parameters = content.spec.volumeGroupSnapshotClassName === undefined ? {} : (this.#classOf(content).parameters ?? {})
    const contentName = new Map([['volumegroupsnapshotcontent.name', content.metadata.name ?? '']])
    const { getGroup } = snapshotSecretKeys
    return credentialsOf(this.#context.client, secretReferenceOf(parameters, getGroup, getGroup, { forName: contentName, forNamespace: contentName }), signal)
  }

  #foundClass({ spec }: Content): Frozen<VolumeGroupSnapshotClass> | undefined {
    return this.#context.informers.of(volumeGroupSnapshotClasses).store.get(spec.volumeGroupSnapshotClassName ?? '')
  }

  #classOf(content: Content): Frozen<VolumeGroupSnapshotClass> {
    const { volumeGroupSnapshotClassName: name } = content.spec
    if (name === undefined) throw new Error(`failed to take group snapshot ${content.metadata.name} without a group snapshot class`)
    const found = this.#foundClass(content)
    if (!found) throw new Error(`volumegroupsnapshotclass.${groupSnapshotGroup} "${name}" not found`)
    return found
  }

  async #save(
    content: Content,
    { groupSnapshotId, creationTime: created, readyToUse }: VolumeGroupSnapshot,
    snapshots: readonly Snapshot[],
    signal: AbortSignal,
  ): Promise<void> {
    const { status } = content
    const creationTime = formatTime(created ? created.seconds * 1000 : this.#context.clock.now())
    const isListed = (status?.volumeSnapshotInfoList ?? []).length > 0
    const next = {
      volumeGroupSnapshotHandle: status?.volumeGroupSnapshotHandle ?? groupSnapshotId,
      creationTime: status?.creationTime ?? creationTime,
      ...(isListed || snapshots.length === 0 ? {} : { volumeSnapshotInfoList: snapshots.map(memberInfo) }),
      readyToUse,
      ...(readyToUse ? { error: null } : {}),
    }
    await this.#contents.patchStatus(content, next, signal)
  }

  #showFailure(content: Content, isFirst: boolean, error: unknown, signal: AbortSignal): Promise<void> {
    const [reason, what] = isFirst
      ? (['GroupSnapshotCreationFailed', 'create group snapshot'] as const)
      : (['GroupSnapshotContentCheckandUpdateFailed', 'check and update group snapshot content'] as const)
    return this.#contents.showFailure(content, reason, `Failed to ${what}: ${messageOf(error)}`, signal)
  }

  #delete(content: Content, signal: AbortSignal): Promise<undefined> {
    const { metadata, spec, status } = content
    const groupSnapshotId = spec.deletionPolicy === 'Delete' ? status?.volumeGroupSnapshotHandle : undefined
    const listed = (status?.volumeSnapshotInfoList ?? []).flatMap(({ snapshotHandle }) => snapshotHandle ?? [])
    const snapshotIds = listed.length > 0 ? listed : (spec.source.groupSnapshotHandles?.volumeSnapshotHandles ?? [])
    const call = async () => {
      if (snapshotIds.length === 0) throw new Error(`cannot delete group snapshot content ${metadata.name}. No snapshots found in the group snapshot`)
      const secrets = await this.#contents.secretsOf(content, signal)
      await this.#context.connection.call(
        'deleteVolumeGroupSnapshot',
        { groupSnapshotId: groupSnapshotId ?? '', snapshotIds, secrets },
        this.#contents.timeoutMs,
        signal,
      )
    }
    const cleared = ['volumeGroupSnapshotHandle', 'readyToUse', 'creationTime', 'error']
    const removal = { reason: 'GroupSnapshotDeleteError', failure: 'Failed to delete group snapshot', cleared, call }
    return this.#contents.delete(content, groupSnapshotId === undefined ? undefined : removal, signal)
  }
}

/** @throws Error for an answer without an id */
function groupOf({ groupSnapshot }: { readonly groupSnapshot: VolumeGroupSnapshot | null }): VolumeGroupSnapshot {
  if (groupSnapshot?.groupSnapshotId) return groupSnapshot
  throw new Error('the driver answered without the id of the group snapshot')
}

function memberInfo({ snapshotId, sourceVolumeId, sizeBytes, creationTime, readyToUse }: Snapshot): MemberInfo {
  return {
    ...{ volumeHandle: sourceVolumeId, snapshotHandle: snapshotId, readyToUse },
    ...(creationTime ? { creationTime: nanosecondsOf(creationTime) } : {}),
    ...(sizeBytes > 0 ? { restoreSize: sizeBytes } : {}),
  }
}
