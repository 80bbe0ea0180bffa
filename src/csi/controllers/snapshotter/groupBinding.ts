/**
 * Gives each VolumeGroupSnapshot a VolumeGroupSnapshotContent with the volumes of the claims that it selects, a VolumeSnapshot for each snapshot that the driver has
 * taken, and deletes them with it (L3). It knows no driver; groupTaking.ts calls them. Upstream: external-snapshotter,
 * pkg/common-controller/groupsnapshot_controller_helper.go.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { formatLabelSelector, selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import { isProtected } from '#controllers/shared/protection'
import type { CsiContext } from '../context.ts'
import { setFinalizer } from '../finalizers.ts'
import type { SecretReference } from '../secrets.ts'
import { groupKind, snapshotKind } from './boundKinds.ts'
import { BoundObjects, isBeingRestored, SnapshotProblem, volumeOfClaim } from './boundObjects.ts'
import { memberId, ownedBy, owningGroupOf } from './groupMembers.ts'
import type { MemberInfo, VolumeGroupSnapshot, VolumeGroupSnapshotClass, VolumeGroupSnapshotContent } from './groupTypes.ts'
import { annotations, finalizers } from './snapshotNames.ts'
import type { VolumeSnapshot, VolumeSnapshotContent } from './snapshotTypes.ts'

type Group = Frozen<VolumeGroupSnapshot>
type Content = Frozen<VolumeGroupSnapshotContent>
type Volume = Frozen<PersistentVolume>

const contentNameOf = ({ metadata, spec }: Group) => spec.source.volumeGroupSnapshotContentName ?? `groupsnapcontent-${metadata.uid}`

export class GroupBinding {
  readonly #context: CsiContext
  readonly #bound: BoundObjects<VolumeGroupSnapshot, VolumeGroupSnapshotContent>
  readonly #members: BoundObjects<VolumeSnapshot, VolumeSnapshotContent>

  constructor(context: CsiContext) {
    this.#context = context
    this.#bound = new BoundObjects(context, groupKind)
    this.#members = new BoundObjects(context, snapshotKind)
  }

  async reconcileGroup(key: string, signal: AbortSignal): Promise<undefined> {
    const group = this.#bound.get(key)
    if (!group) return
    if (group.metadata.deletionTimestamp !== undefined) return this.#delete(group, signal)
    return this.#bound.attempt(group, async () => this.#bind(await this.#protect(group, signal), signal), signal)
  }

  /** @param enqueue the group of a content that says something new */
  async reconcileContent(name: string, enqueue: (groupKey: string) => void, signal: AbortSignal): Promise<undefined> {
    const content = this.#bound.content(name)
    if (!content) return
    const { groupSnapshotHandles, volumeHandles = [] } = content.spec.source
    if ((groupSnapshotHandles === undefined) === (volumeHandles.length === 0)) {
      const problem = 'Exactly one of GroupSnapshotHandles and VolumeHandles should be specified'
      this.#bound.events.event(content, 'Warning', 'GroupContentValidationError', problem)
      throw new Error(problem)
    }
    const { name: groupName, namespace, uid } = content.spec.volumeGroupSnapshotRef
    if (!uid) return
    if (content.metadata.deletionTimestamp === undefined && !isProtected(content, finalizers.groupContent)) {
      await setFinalizer(this.#bound.contents, content, finalizers.groupContent, true, signal)
      return
    }
    const key = `${namespace}/${groupName}`
    if (this.#bound.get(key)?.metadata.uid === uid) enqueue(key)
  }

  /** The keys of the snapshots of a group. */
  membersOf(group: Group): string[] {
    return this.#membersOf(group).map(keyOf)
  }

  #membersOf({ metadata }: Group): Frozen<VolumeSnapshot>[] {
    return this.#members.list().filter((one) => one.metadata.namespace === metadata.namespace && owningGroupOf(one)?.uid === metadata.uid)
  }

  /** Checks the source, and holds the group for its content. */
  async #protect(group: Group, signal: AbortSignal): Promise<Group> {
    const { selector, volumeGroupSnapshotContentName: given } = group.spec.source
    if ((selector === undefined) === (given === undefined))
      throw new SnapshotProblem('GroupSnapshotValidationError', 'Exactly one of Selector and VolumeGroupSnapshotContentName should be specified')
    return setFinalizer(this.#bound.objects, group, finalizers.boundGroup, true, signal)
  }

  async #bind(group: Group, signal: AbortSignal): Promise<void> {
    const bound = group.status?.boundVolumeGroupSnapshotContentName
    if (group.status?.readyToUse && bound !== undefined) return this.#bound.checkBound(group, bound)
    const content = this.#bound.contentFor(group, contentNameOf(group))
    if (group.spec.source.volumeGroupSnapshotContentName !== undefined) {
      if (!content) throw this.#bound.missing()
      return this.#follow(group, await this.#bound.claimGiven(group, content, signal), signal)
    }
    const driverOf = async (fail: (problem: string) => Error) => (await this.#volumesOf(group, fail, signal))[0]?.spec.csi?.driver
    const groupClass = await this.#bound.classOf(group, driverOf, signal)
    if (content) await this.#createMembers(group, groupClass, content, signal)
    await this.#follow(group, content ?? (await this.#createContent(group, groupClass, signal)), signal)
  }

  /** The volumes of the selected claims. They are listed at the server: labels may have been set just before. */
  async #volumesOf(group: Group, fail: (problem: string) => Error, signal: AbortSignal): Promise<Volume[]> {
    const { selector } = group.spec.source
    const claims = await this.#claimsOf(group, signal).catch((error: unknown) => {
      throw fail(`failed to list PVCs with label selector ${formatLabelSelector(selector)}: ${JSON.stringify(messageOf(error))}`)
    })
    if (claims.length === 0) throw fail(`label selector ${formatLabelSelector(selector)} for group snapshot not applied to any PVC`)
    return claims.map((claim) => volumeOfClaim(this.#context, claim, 'group snapshot', fail))
  }

  async #claimsOf({ metadata, spec }: Group, signal: AbortSignal): Promise<readonly Frozen<PersistentVolumeClaim>[]> {
    const labelSelector = selectorOf(spec.source.selector).toString()
    return (await this.#context.client.of(persistentVolumeClaims).list({ namespace: metadata.namespace, labelSelector, signal })).items
  }

  async #createContent(group: Group, groupClass: Frozen<VolumeGroupSnapshotClass>, signal: AbortSignal): Promise<Content> {
    const fail = (problem: string) => new SnapshotProblem('GroupSnapshotContentCreationFailed', `failed to create group snapshot content with error ${problem}`)
    const input = (problem: string) => fail(`failed to get input parameters to create group snapshot ${group.metadata.name}: ${JSON.stringify(problem)}`)
    const volumes = await this.#volumesOf(group, input, signal)
    let secret: SecretReference | undefined
    try {
      secret = this.#bound.secretOf(group, groupClass, contentNameOf(group))
    } catch (error) {
      throw input(messageOf(error))
    }
    const { driver, deletionPolicy, metadata } = groupClass
    const content = {
      metadata: this.#bound.contentMetadata(contentNameOf(group), secret),
      spec: {
        ...{ driver, deletionPolicy },
        source: { volumeHandles: volumes.map((volume) => this.#handleOf(group, driver, volume, fail)) },
        volumeGroupSnapshotClassName: metadata.name,
        volumeGroupSnapshotRef: this.#bound.referenceTo(group),
      },
    }
    const created = await this.#bound.createContent(content, (error) => fail(messageOf(error)), signal)
    const waiting = `Waiting for a group snapshot ${keyOf(group)} to be created by the CSI driver.`
    this.#bound.events.event(group, 'Normal', 'CreatingGroupSnapshot', waiting)
    return created
  }

  #handleOf(group: Group, driver: string, { metadata, spec }: Volume, fail: (problem: string) => Error): string {
    const refuse = (event: string, problem: string) => {
      this.#bound.events.event(group, 'Warning', 'CreateGroupSnapshotContentFailed', event)
      return fail(problem)
    }
    const { name } = metadata
    if (!spec.csi) throw refuse(`Cannot snapshot a non-CSI volume: ${name}`, `cannot snapshot a non-CSI volume for group snapshot ${keyOf(group)}: ${name}`)
    if (spec.csi.driver === driver) return spec.csi.volumeHandle
    const problem = `Volume CSI driver (${spec.csi.driver}) mismatch with VolumeGroupSnapshotClass (${driver}) ${keyOf(group)}: ${name}`
    throw refuse(problem, `snapshot controller failed to update ${keyOf(group)} on API server: ${problem}`)
  }

  /** A VolumeSnapshot with its content for each snapshot that the driver has taken. */
  async #createMembers(group: Group, groupClass: Frozen<VolumeGroupSnapshotClass>, content: Content, signal: AbortSignal): Promise<void> {
    const { volumeGroupSnapshotHandle: handle, volumeSnapshotInfoList: taken = [] } = content.status ?? {}
    if (handle === undefined) return
    const ofDriver = this.#context.informers
      .of(persistentVolumes)
      .store.list()
      .flatMap((volume) => (volume.spec.csi?.driver === content.spec.driver ? [[volume.spec.csi.volumeHandle, volume] as const] : []))
    const volumes = new Map(ofDriver)
    const secret = this.#bound.secretOf(group, groupClass, contentNameOf(group))
    for (const info of taken) await this.#createMember({ group, content, handle, secret, info, volume: volumes.get(info.volumeHandle ?? '') }, signal)
  }

  async #createMember({ group, content, handle, secret, info, volume }: Member, signal: AbortSignal): Promise<void> {
    const id = memberId(group, info.volumeHandle ?? '')
    const [contentName, name] = [`snapcontent-${id}`, `snapshot-${id}`]
    const { namespace } = group.metadata
    const old = this.#members.get(`${namespace}/${name}`)
    if (old?.status?.boundVolumeSnapshotContentName !== undefined && this.#members.content(contentName)?.status?.snapshotHandle !== undefined) return
    const created = await this.#members.createContent(memberContent({ group, content, handle, secret, info, volume }, contentName, name), asIs, signal)
    const { metadata } = await this.#createSnapshot(group, name, volume, signal)
    if (created.spec.volumeSnapshotRef.uid !== metadata.uid) await this.#members.claimContent(created, metadata.uid, signal)
    const { snapshotHandle, creationTime, restoreSize, readyToUse } = info
    const said = { snapshotHandle, volumeGroupSnapshotHandle: handle, creationTime, restoreSize, readyToUse }
    await this.#members.contents.patch({ name: contentName }, 'merge', { status: said }, { subresource: 'status', signal })
    const bound = { boundVolumeSnapshotContentName: contentName }
    await this.#members.objects.patch({ namespace, name }, 'merge', { status: bound }, { subresource: 'status', signal })
  }

  async #createSnapshot(group: Group, name: string, volume: Volume | undefined, signal: AbortSignal): Promise<Frozen<VolumeSnapshot>> {
    const { namespace } = group.metadata
    const metadata = { namespace, name, ownerReferences: [ownedBy(group)], finalizers: [finalizers.inGroup] }
    try {
      const spec = { source: { persistentVolumeClaimName: volume?.spec.claimRef?.name ?? '' } }
      return await this.#members.objects.create({ metadata, spec }, { signal })
    } catch (error) {
      if (!isStatus(error, 'AlreadyExists')) throw error
      return this.#members.objects.get({ namespace, name }, { signal })
    }
  }

  /** The group shows what its content says. */
  async #follow(group: Group, { metadata, status: said = {} }: Content, signal: AbortSignal): Promise<void> {
    const old = group.status
    const creationTime = old?.creationTime ?? said.creationTime
    const next = {
      boundVolumeGroupSnapshotContentName: old?.boundVolumeGroupSnapshotContentName ?? metadata.name,
      readyToUse: said.readyToUse ?? false,
      ...(creationTime === undefined ? {} : { creationTime }),
      error: said.error ?? null,
    }
    await this.#bound.follow(group, next, signal)
  }

  /** The group stays until its content has gone, unless the content is kept. Its snapshots are deleted in any case. */
  async #delete(group: Group, signal: AbortSignal): Promise<undefined> {
    if (!isProtected(group, finalizers.boundGroup)) return
    const content = this.#bound.ownContent(group, group.status?.boundVolumeGroupSnapshotContentName ?? contentNameOf(group))
    const members = this.#membersOf(group)
    const restored = members.find((member) => isBeingRestored(this.#context, member))
    if (restored) {
      const problem = `Snapshot ${keyOf(restored)} belonging to VolumeGroupSnapshot ${keyOf(group)} is being used to restore a PVC`
      this.#bound.events.event(group, 'Warning', 'SnapshotDeletePending', problem)
      throw new Error(`${problem}: snapshot is in use, will retry deletion`)
    }
    const goesAlong = await this.#bound.removeContent(group, content, signal)
    for (const member of members) await this.#deleteMember(group, member, signal)
    if (!goesAlong) await setFinalizer(this.#bound.objects, group, finalizers.boundGroup, false, signal)
  }

  async #deleteMember(group: Group, { metadata }: Frozen<VolumeSnapshot>, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', deletionTimestamp } = metadata
    if (deletionTimestamp !== undefined) return
    try {
      await this.#members.objects.delete({ namespace, name }, { signal })
    } catch (error) {
      if (isStatus(error, 'NotFound')) return
      const problem = `failed to delete snapshot API object ${namespace}/${name} part of group snapshot ${keyOf(group)}: ${messageOf(error)}`
      this.#bound.events.event(group, 'Warning', 'SnapshotDeleteError', problem)
      throw error
    }
  }
}

interface Member {
  readonly group: Group
  readonly content: Content
  readonly handle: string
  readonly secret: SecretReference | undefined
  readonly info: MemberInfo
  /** Undefined when it has been deleted. */
  readonly volume: Volume | undefined
}

const asIs = (error: unknown) => error as Error

function memberContent({ group, content, handle, secret, info, volume }: Member, contentName: string, name: string) {
  const ofSecret = secret && { [annotations.secretName]: secret.name, [annotations.secretNamespace]: secret.namespace }
  const { driver, deletionPolicy } = content.spec
  return {
    metadata: { name: contentName, annotations: { [annotations.group]: handle, ...ofSecret } },
    spec: {
      ...{ driver, deletionPolicy },
      source: { volumeHandle: info.volumeHandle },
      volumeSnapshotRef: { kind: 'VolumeSnapshot', name, namespace: group.metadata.namespace },
      ...(volume?.spec.volumeMode ? { sourceVolumeMode: volume.spec.volumeMode } : {}),
    },
  }
}
