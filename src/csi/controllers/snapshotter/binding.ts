/**
 * Gives each VolumeSnapshot a VolumeSnapshotContent, shows in it what the content says, and deletes the content with it (L3). It knows no driver; taking.ts calls
 * them. The contents of a group's snapshots come from groupBinding.ts. Upstream: external-snapshotter, pkg/common-controller.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { formatQuantity, quantityOf } from '#api/machinery/quantity'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import { persistentVolumeClaims } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { NewObject, ResourceClient } from '#client/client'
import { StaleCacheError } from '#controllers/framework/reconciler'
import { isProtected } from '#controllers/shared/protection'
import type { CsiContext } from '../context.ts'
import { setFinalizer } from '../finalizers.ts'
import { snapshotKind } from './boundKinds.ts'
import { BoundObjects, isBeingRestored, SnapshotProblem, volumeOfClaim } from './boundObjects.ts'
import { ownedBy, owningGroupOf } from './groupMembers.ts'
import { type VolumeGroupSnapshot, volumeGroupSnapshotContents, volumeGroupSnapshots } from './groupTypes.ts'
import { finalizers } from './snapshotNames.ts'
import type { VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from './snapshotTypes.ts'

type Snapshot = Frozen<VolumeSnapshot>
type Content = Frozen<VolumeSnapshotContent>

/** The snapshot of a group has the name in its status. */
function contentNameOf(snapshot: Snapshot): string {
  const { metadata, spec, status } = snapshot
  if (owningGroupOf(snapshot) !== undefined) return status?.boundVolumeSnapshotContentName ?? spec.source.volumeSnapshotContentName ?? ''
  return spec.source.volumeSnapshotContentName ?? `snapcontent-${metadata.uid}`
}

export class Binding {
  readonly #context: CsiContext
  readonly #bound: BoundObjects<VolumeSnapshot, VolumeSnapshotContent>
  readonly #claims: ResourceClient<PersistentVolumeClaim>
  readonly #hasGroups: boolean

  /** @param hasGroups the kinds of groupsnapshot.storage.k8s.io are served */
  constructor(context: CsiContext, hasGroups: boolean) {
    const { client, clock, informers } = context
    this.#context = context
    this.#hasGroups = hasGroups
    this.#bound = new BoundObjects(context, snapshotKind)
    this.#claims = readYourWrites(client.of(persistentVolumeClaims), informers.of(persistentVolumeClaims), clock)
  }

  async reconcileSnapshot(key: string, signal: AbortSignal): Promise<undefined> {
    const snapshot = this.#bound.get(key)
    if (!snapshot) return
    await this.#freeClaim(snapshot, signal)
    if (snapshot.metadata.deletionTimestamp !== undefined) return this.#delete(snapshot, signal)
    return this.#bound.attempt(snapshot, async () => this.#bind(await this.#protect(snapshot, signal), signal), signal)
  }

  /** @param enqueue the snapshot of a content that says something new */
  async reconcileContent(key: string, enqueue: (snapshotKey: string) => void, signal: AbortSignal): Promise<undefined> {
    const content = this.#bound.content(key)
    const { name, namespace, uid } = content?.spec.volumeSnapshotRef ?? {}
    if (!content || !uid) return
    if (content.metadata.deletionTimestamp === undefined && !isProtected(content, finalizers.content)) {
      await setFinalizer(this.#bound.contents, content, finalizers.content, true, signal)
      return
    }
    const snapshot = this.#bound.get(`${namespace}/${name}`)
    // Content without its snapshot is kept: someone may have copied it from another cluster, and the data with it.
    if (snapshot?.metadata.uid !== uid) return
    enqueue(`${namespace}/${name}`)
  }

  /** Checks the source, and holds the snapshot: as a source of volumes always, for its content if that goes with it. */
  async #protect(snapshot: Snapshot, signal: AbortSignal): Promise<Snapshot> {
    const { persistentVolumeClaimName: claim, volumeSnapshotContentName: given } = snapshot.spec.source
    if ((claim === undefined) === (given === undefined))
      throw new SnapshotProblem('SnapshotValidationError', 'Exactly one of PersistentVolumeClaimName and VolumeSnapshotContentName should be specified')
    const content = this.#contentOf(snapshot)
    const held = await setFinalizer(this.#bound.objects, snapshot, finalizers.asSource, true, signal)
    return content?.spec.deletionPolicy === 'Delete' ? setFinalizer(this.#bound.objects, held, finalizers.bound, true, signal) : held
  }

  /** Undefined when there is none yet. @throws SnapshotProblem when it is another snapshot's, or of the other sort */
  #contentOf(snapshot: Snapshot): Content | undefined {
    const name = contentNameOf(snapshot)
    const content = this.#bound.content(name)
    const isMember = owningGroupOf(snapshot) !== undefined && snapshot.spec.source.volumeSnapshotContentName === undefined
    if (isMember && content && !content.spec.volumeSnapshotRef.uid && this.#bound.hasName(content, snapshot))
      throw new StaleCacheError(`content ${name} is not bound yet`)
    return this.#bound.contentFor(snapshot, name)
  }

  async #bind(snapshot: Snapshot, signal: AbortSignal): Promise<void> {
    const bound = snapshot.status?.boundVolumeSnapshotContentName
    if (snapshot.status?.readyToUse && bound !== undefined) {
      this.#bound.checkBound(snapshot, bound)
      return this.#addOwner(snapshot, signal)
    }
    const content = this.#contentOf(snapshot)
    if (snapshot.spec.source.volumeSnapshotContentName !== undefined) {
      if (!content) throw this.#bound.missing()
      return this.#follow(snapshot, await this.#bound.claimGiven(snapshot, content, signal), signal)
    }
    if (owningGroupOf(snapshot) !== undefined) {
      if (!content) throw new StaleCacheError(`detected group snapshot member ${keyOf(snapshot)} with no content, retrying`)
      return this.#follow(snapshot, content, signal)
    }
    const driverOf = async (fail: (problem: string) => Error) => this.#volumeOf(snapshot, fail).volume.spec.csi?.driver
    const snapshotClass = await this.#bound.classOf(snapshot, driverOf, signal)
    await this.#follow(snapshot, content ?? (await this.#createContent(snapshot, snapshotClass, signal)), signal)
  }

  /** The snapshot of an administrator's content may belong to a group. */
  async #addOwner(snapshot: Snapshot, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', resourceVersion, ownerReferences = [] } = snapshot.metadata
    const group = owningGroupOf(snapshot) === undefined ? this.#groupOf(snapshot) : undefined
    if (!group) return
    const metadata = { resourceVersion, ownerReferences: [...ownerReferences, ownedBy(group)] }
    await this.#bound.objects.patch({ namespace, name }, 'merge', { metadata }, { signal })
  }

  #groupOf(snapshot: Snapshot): Frozen<VolumeGroupSnapshot> | undefined {
    const owner = owningGroupOf(snapshot)
    const name = snapshot.status?.volumeGroupSnapshotName ?? owner?.name
    if (name === undefined || !this.#hasGroups) return undefined
    const found = this.#context.informers.of(volumeGroupSnapshots).store.get(`${snapshot.metadata.namespace}/${name}`)
    // Another group may have the name by now.
    return owner && found?.metadata.uid !== owner.uid ? undefined : found
  }

  #volumeOf(snapshot: Snapshot, fail: (problem: string) => Error): { claim: Frozen<PersistentVolumeClaim>; volume: Frozen<PersistentVolume> } {
    const { informers } = this.#context
    const name = snapshot.spec.source.persistentVolumeClaimName ?? ''
    const claim = informers.of(persistentVolumeClaims).store.get(`${snapshot.metadata.namespace}/${name}`)
    if (!claim) throw fail(`failed to retrieve PVC ${name} from the lister: "persistentvolumeclaim \\"${name}\\" not found"`)
    return { claim, volume: volumeOfClaim(this.#context, claim, 'snapshot', fail) }
  }

  async #createContent(snapshot: Snapshot, snapshotClass: Frozen<VolumeSnapshotClass>, signal: AbortSignal): Promise<Content> {
    const fail = (problem: string) => new SnapshotProblem('SnapshotContentCreationFailed', `Failed to create snapshot content with error ${problem}`)
    const { claim, volume } = this.#volumeOf(snapshot, (problem) =>
      fail(`failed to get input parameters to create snapshot ${snapshot.metadata.name}: ${JSON.stringify(problem)}`),
    )
    if (!volume.spec.csi) throw fail(`cannot find CSI PersistentVolumeSource for volume ${volume.metadata.name}`)
    if (claim.metadata.deletionTimestamp && !isProtected(claim, finalizers.claim))
      throw fail(`snapshot controller failed to update ${claim.metadata.name} on API server: cannot add finalizer on claim because it is being deleted`)
    // The claim stays until the snapshot is taken.
    await setFinalizer(this.#claims, claim, finalizers.claim, true, signal)
    let content: NewObject<VolumeSnapshotContent>
    try {
      content = this.#contentFor(snapshot, snapshotClass, volume)
    } catch (error) {
      throw fail(messageOf(error))
    }
    const created = await this.#bound.createContent(content, (error) => fail(messageOf(error)), signal)
    this.#bound.events.event(snapshot, 'Normal', 'CreatingSnapshot', `Waiting for a snapshot ${keyOf(snapshot)} to be created by the CSI driver.`)
    return created
  }

  /** @throws Error for a Secret that the class does not name well */
  #contentFor(snapshot: Snapshot, snapshotClass: Frozen<VolumeSnapshotClass>, { spec }: Frozen<PersistentVolume>): NewObject<VolumeSnapshotContent> {
    const { metadata, driver, deletionPolicy } = snapshotClass
    const name = contentNameOf(snapshot)
    return {
      metadata: this.#bound.contentMetadata(name, this.#bound.secretOf(snapshot, snapshotClass, name)),
      spec: {
        ...{ driver, deletionPolicy },
        source: { volumeHandle: spec.csi?.volumeHandle },
        volumeSnapshotClassName: metadata.name,
        volumeSnapshotRef: this.#bound.referenceTo(snapshot),
        ...(spec.volumeMode ? { sourceVolumeMode: spec.volumeMode } : {}),
      },
    }
  }

  /** The snapshot shows what its content says. */
  async #follow(snapshot: Snapshot, { metadata, status: said = {} }: Content, signal: AbortSignal): Promise<void> {
    const old = snapshot.status
    const creationTime = old?.creationTime ?? (said.creationTime === undefined ? undefined : formatTime(said.creationTime / 1e6))
    const restoreSize = said.restoreSize === undefined ? old?.restoreSize : formatQuantity(quantityOf(said.restoreSize, 'BinarySI'))
    const volumeGroupSnapshotName = old?.volumeGroupSnapshotName ?? this.#groupOfHandle(snapshot, said.volumeGroupSnapshotHandle)
    const next = {
      boundVolumeSnapshotContentName: old?.boundVolumeSnapshotContentName ?? metadata.name,
      readyToUse: said.readyToUse ?? false,
      ...(creationTime === undefined ? {} : { creationTime }),
      ...(restoreSize === undefined ? {} : { restoreSize }),
      ...(volumeGroupSnapshotName === undefined ? {} : { volumeGroupSnapshotName }),
      error: said.error ?? null,
    }
    await this.#bound.follow(snapshot, next, signal)
  }

  /** The group of the snapshot's namespace that has the handle now, or had it. @throws StaleCacheError while no content of a group has the handle */
  #groupOfHandle({ metadata }: Snapshot, handle: string | undefined): string | undefined {
    if (handle === undefined || !this.#hasGroups) return undefined
    const { informers } = this.#context
    const references = informers
      .of(volumeGroupSnapshotContents)
      .store.list()
      .flatMap(({ spec, status }) => (status?.volumeGroupSnapshotHandle === handle ? [spec.volumeGroupSnapshotRef] : []))
    const groups = informers.of(volumeGroupSnapshots).store
    const isThere = ({ namespace, name, uid }: (typeof references)[number]) =>
      namespace === metadata.namespace && groups.get(`${namespace}/${name}`)?.metadata.uid === uid
    const found = references.find(isThere) ?? references[0]
    if (!found) throw new StaleCacheError(`no content of a group snapshot has the handle ${handle}`)
    return found.name
  }

  /** @param isLeaving the snapshot itself no longer needs the claim */
  async #freeClaim(snapshot: Snapshot, signal: AbortSignal, isLeaving = false): Promise<void> {
    const { informers } = this.#context
    const { namespace } = snapshot.metadata
    const name = snapshot.spec.source.persistentVolumeClaimName
    const claim = name === undefined ? undefined : informers.of(persistentVolumeClaims).store.get(`${namespace}/${name}`)
    if (!claim || !isProtected(claim, finalizers.claim)) return
    const isUser = ({ metadata, spec, status }: Snapshot) =>
      metadata.namespace === namespace &&
      spec.source.persistentVolumeClaimName === name &&
      !status?.readyToUse &&
      !(isLeaving && metadata.uid === snapshot.metadata.uid)
    if (!this.#bound.list().some(isUser)) await setFinalizer(this.#claims, claim, finalizers.claim, false, signal)
  }

  /** The snapshot stays until its content has gone, unless the content is kept, and as long as its group. */
  async #delete(snapshot: Snapshot, signal: AbortSignal): Promise<undefined> {
    const holding = [finalizers.inGroup, finalizers.asSource, finalizers.bound]
    if (!holding.some((finalizer) => isProtected(snapshot, finalizer))) return
    const content = this.#bound.ownContent(snapshot, snapshot.status?.boundVolumeSnapshotContentName ?? contentNameOf(snapshot))
    if (content && isBeingRestored(this.#context, snapshot))
      this.#refuseDeletion(
        snapshot,
        'Snapshot is being used to restore a PVC',
        `snapshot ${keyOf(snapshot)} is in use (being used to restore a PVC), will retry deletion`,
      )
    const group = this.#groupOf(snapshot)
    if (group) {
      const whole = 'Deleting the group snapshot will trigger the deletion of all the individual volume snapshots that are part of the group.'
      const problem = `deletion of the individual volume snapshot ${keyOf(snapshot)} is not allowed as it belongs to group snapshot ${keyOf(group)}. ${whole}`
      this.#refuseDeletion(snapshot, problem, problem)
    }
    const goesAlong = await this.#bound.removeContent(snapshot, content, signal)
    // Once the snapshot is gone, nothing would free its claim.
    await this.#freeClaim(snapshot, signal, true)
    let freed = snapshot
    for (const finalizer of holding)
      if (finalizer !== finalizers.bound || !goesAlong) freed = await setFinalizer(this.#bound.objects, freed, finalizer, false, signal)
  }

  #refuseDeletion(snapshot: Snapshot, event: string, problem: string): never {
    this.#bound.events.event(snapshot, 'Warning', 'SnapshotDeletePending', event)
    throw new Error(problem)
  }
}
