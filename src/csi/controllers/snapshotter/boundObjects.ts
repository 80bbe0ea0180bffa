/**
 * The steps that binding.ts and groupBinding.ts share (L3): they bind an object of a user to its content, and show the user progress and problems.
 * Upstream: external-snapshotter, pkg/common-controller.
 */
import type { ObjectReference, PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { isBoundToClaim } from '#api/helpers/volumes'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import { formatTime } from '#base/time'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { NewObject, ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { CsiContext } from '../context.ts'
import { type SecretReference, secretReferenceOf } from '../secrets.ts'
import type { BoundKind, UserObject } from './boundKinds.ts'
import { isSnapshotReference, type VolumeSnapshot, type VolumeSnapshotClass } from './snapshotTypes.ts'

/** A problem that the user's object shows, under the reason of its event. */
export class SnapshotProblem extends Error {
  readonly reason: string
  /** Whether the object, if it was ready, is so no more. */
  readonly isUnusable: boolean

  constructor(reason: string, message: string, isUnusable = true) {
    super(message)
    this.reason = reason
    this.isUnusable = isUnusable
  }
}

/** The steps of an object's life that have events; other fields are written as they are. */
interface Progress {
  readonly creationTime?: string
  readonly readyToUse: boolean
}

type Fail = (problem: string) => Error

export class BoundObjects<T extends UserObject, Content extends KubeObject> {
  readonly events: EventRecorder
  readonly objects: ResourceClient<T>
  readonly contents: ResourceClient<Content>
  readonly #context: CsiContext
  readonly #kind: BoundKind<T, Content>

  constructor(context: CsiContext, kind: BoundKind<T, Content>) {
    this.#context = context
    this.#kind = kind
    this.events = context.events('snapshot-controller')
    const { client, clock, informers } = context
    this.objects = readYourWrites(client.of(kind.objects), informers.of(kind.objects), clock)
    this.contents = readYourWrites(client.of(kind.contents), informers.of(kind.contents), clock)
  }

  get(key: string): Frozen<T> | undefined {
    return this.#context.informers.of(this.#kind.objects).store.get(key)
  }

  list(): readonly Frozen<T>[] {
    return this.#context.informers.of(this.#kind.objects).store.list()
  }

  content(name: string): Frozen<Content> | undefined {
    return this.#context.informers.of(this.#kind.contents).store.get(name)
  }

  /** The content names the object, perhaps without its uid. */
  hasName(content: Frozen<Content>, { metadata }: Frozen<T>): boolean {
    const { name, namespace } = this.#kind.referenceOf(content)
    return name === metadata.name && namespace === metadata.namespace
  }

  /** Undefined also for content that is another object's. */
  ownContent(object: Frozen<T>, name: string): Frozen<Content> | undefined {
    const content = this.content(name)
    return content && this.#isOf(content, object) ? content : undefined
  }

  #isOf(content: Frozen<Content>, object: Frozen<T>): boolean {
    return this.hasName(content, object) && this.#kind.referenceOf(content).uid === object.metadata.uid
  }

  /** The content of this name for the object; undefined when there is none yet. @throws SnapshotProblem when it is another object's, or of the other sort */
  contentFor(object: Frozen<T>, name: string): Frozen<Content> | undefined {
    const { kind, reason, what, given, isPreProvisioned, referenceOf } = this.#kind
    const content = this.content(name)
    if (!content) return undefined
    const isGiven = given(object) !== undefined
    const [sort, other] = ['dynamically provisioned', 'pre-provisioned']
    if (isGiven !== isPreProvisioned(content)) {
      const about = isGiven ? `${kind}Content is ${sort} while expecting a ${other} one` : `${kind}Content ${name} is ${other} while expecting a ${sort} one`
      throw new SnapshotProblem(`${reason}ContentMismatch`, about)
    }
    if (!this.#isOf(content, object) && !(isGiven && !referenceOf(content).uid && this.hasName(content, object)))
      throw new SnapshotProblem(`${reason}ContentMisbound`, `${kind}Content [${name}] is bound to a different ${what}`)
    return content
  }

  /** For content that the user has named. @throws SnapshotProblem */
  missing(): SnapshotProblem {
    return new SnapshotProblem(`${this.#kind.reason}ContentMissing`, `${this.#kind.kind}Content is missing`)
  }

  /** Checks an object that is ready. @throws SnapshotProblem when its content is gone, or another object's */
  checkBound(object: Frozen<T>, name: string): void {
    const { kind, reason } = this.#kind
    const content = this.content(name)
    if (!content) throw this.missing()
    if (!this.#isOf(content, object)) throw new SnapshotProblem(`${reason}Misbound`, `${kind}Content is not bound to the ${kind} correctly`)
  }

  /** The object's class, which becomes the driver's default one. @param driverOf the object's volumes @throws SnapshotProblem */
  async classOf(object: Frozen<T>, driverOf: (fail: Fail) => Promise<string | undefined>, signal: AbortSignal): Promise<Frozen<VolumeSnapshotClass>> {
    const { kind, apiGroup, reason, what, noClass, fields, annotations } = this.#kind
    const classes = this.#context.informers.of(this.#kind.classes).store
    const className = this.#kind.className(object)
    if (className !== undefined) {
      const found = classes.get(className)
      const problem = `${noClass} with error ${kind.toLowerCase()}class.${apiGroup} "${className}" not found`
      if (!found) throw new SnapshotProblem(`Get${reason}ClassFailed`, problem, false)
      return found
    }
    const fail = (problem: string) => new SnapshotProblem(`SetDefault${reason}ClassFailed`, `Failed to set default ${what} class with error ${problem}`, false)
    const driver = await driverOf(fail)
    if (driver === undefined) throw fail(`snapshotting non-CSI volumes is not supported, ${what}:${keyOf(object)}`)
    const only = defaultClassOf(classes.list(), driver, annotations.isDefault, what, fail)
    const { namespace, name = '', resourceVersion } = object.metadata
    const patch = { metadata: { resourceVersion }, spec: { [fields.className]: only.metadata.name } }
    await this.objects.patch({ namespace, name }, 'merge', patch, { signal })
    return only
  }

  /** The Secret for the driver. @throws Error for templates that are incomplete or resolve to no valid name */
  secretOf({ metadata }: Frozen<T>, { parameters = {} }: Frozen<VolumeSnapshotClass>, contentName: string): SecretReference | undefined {
    const { kind, secretKeys } = this.#kind
    const { namespace = '', name = '' } = metadata
    const prefix = kind.toLowerCase()
    const forNamespace = new Map([
      [`${prefix}content.name`, contentName],
      [`${prefix}.namespace`, namespace],
    ])
    return secretReferenceOf(parameters, secretKeys, secretKeys, { forNamespace, forName: new Map([...forNamespace, [`${prefix}.name`, name]]) })
  }

  /** The metadata of new content. */
  contentMetadata(name: string, secret: SecretReference | undefined): { name: string; annotations?: Record<string, string> } {
    const { secretName, secretNamespace } = this.#kind.annotations
    return { name, ...(secret && { annotations: { [secretName]: secret.name, [secretNamespace]: secret.namespace } }) }
  }

  referenceTo({ metadata }: Frozen<T>): ObjectReference {
    const { kind, apiGroup } = this.#kind
    const { namespace = '', name = '', uid, resourceVersion } = metadata
    return { apiVersion: `${apiGroup}/v1`, kind, namespace, name, uid, resourceVersion }
  }

  /** Does the work, and shows a problem in the object. */
  async attempt(object: Frozen<T>, work: () => Promise<void>, signal: AbortSignal): Promise<undefined> {
    try {
      await work()
    } catch (error) {
      if (!signal.aborted && error instanceof SnapshotProblem) await this.#show(object, error, signal)
      throw error
    }
  }

  async #show(object: Frozen<T>, { reason, message, isUnusable }: SnapshotProblem, signal: AbortSignal): Promise<void> {
    if (object.status?.error?.message === message) return
    this.events.event(object, 'Warning', reason, message)
    const error = { message, time: formatTime(this.#context.clock.now()) }
    await this.#patchStatus(object, isUnusable ? { error, readyToUse: false } : { error }, signal)
  }

  async #patchStatus({ metadata }: Frozen<T>, status: object, signal: AbortSignal): Promise<void> {
    const { namespace, name = '' } = metadata
    await this.objects.patch({ namespace, name }, 'merge', { status }, { subresource: 'status', signal })
  }

  /** Writes what is new in the status, with an event for each step. */
  async follow(object: Frozen<T>, next: Progress, signal: AbortSignal): Promise<void> {
    const { reason } = this.#kind
    const about = `${reason} ${keyOf(object)}`
    const old = object.status
    const before = old as Readonly<Record<string, unknown>> | undefined
    if (Object.entries(next).every(([key, value]) => JSON.stringify(before?.[key] ?? null) === JSON.stringify(value))) return
    await this.#patchStatus(object, next, signal)
    if (!old?.creationTime && next.creationTime !== undefined)
      this.events.event(object, 'Normal', `${reason}Created`, `${about} was successfully created by the CSI driver.`)
    if (!old?.readyToUse && next.readyToUse) this.events.event(object, 'Normal', `${reason}Ready`, `${about} is ready to use.`)
  }

  /** The content that exists by then. @param fail says why there is none */
  async createContent(content: NewObject<Content>, fail: (problem: unknown) => Error, signal: AbortSignal): Promise<Frozen<Content>> {
    return this.contents.create(content, { signal }).catch((error: unknown) => {
      if (isStatus(error, 'AlreadyExists')) return this.contents.get({ name: content.metadata?.name ?? '' }, { signal })
      throw fail(error)
    })
  }

  /** Content that an administrator has made names the object, and now its uid. */
  async claimGiven(object: Frozen<T>, content: Frozen<Content>, signal: AbortSignal): Promise<Frozen<Content>> {
    const { fields, replacesClass } = this.#kind
    const className = this.#kind.className(object)
    const old = this.#kind.classNameOf(content)
    const { uid } = object.metadata
    if (this.#kind.referenceOf(content).uid === uid && (className === undefined || old !== undefined)) return content
    const ofClass = className === undefined || (old !== undefined && !replacesClass) ? {} : { [fields.className]: className }
    return this.claimContent(content, uid, signal, ofClass)
  }

  /** The content names the object, and now its uid. */
  claimContent(content: Frozen<Content>, uid: string | undefined, signal: AbortSignal, more: object = {}): Promise<Frozen<Content>> {
    const { name = '', resourceVersion } = content.metadata
    const spec = { [this.#kind.fields.reference]: { ...this.#kind.referenceOf(content), uid }, ...more }
    return this.contents.patch({ name }, 'merge', { metadata: { resourceVersion }, spec }, { signal })
  }

  /** The driver's controller gets to know that the object is being deleted; the content is deleted with it when its policy says so. @returns whether it is */
  async removeContent(object: Frozen<T>, content: Frozen<Content> | undefined, signal: AbortSignal): Promise<boolean> {
    if (!content) return false
    await this.#markDeleted(content, signal)
    if (this.#kind.policyOf(content) !== 'Delete') return false
    await this.#deleteContent(object, content, signal)
    return true
  }

  async #markDeleted({ metadata }: Frozen<Content>, signal: AbortSignal): Promise<void> {
    const { beingDeleted } = this.#kind.annotations
    if (ownValue(metadata.annotations, beingDeleted) !== undefined) return
    await this.contents.patch({ name: metadata.name ?? '' }, 'merge', { metadata: { annotations: { [beingDeleted]: 'yes' } } }, { signal })
  }

  async #deleteContent(object: Frozen<T>, { metadata }: Frozen<Content>, signal: AbortSignal): Promise<void> {
    if (metadata.deletionTimestamp !== undefined) return
    const { reason, what } = this.#kind
    try {
      await this.contents.delete({ name: metadata.name ?? '' }, { signal })
    } catch (error) {
      if (isStatus(error, 'NotFound')) return
      this.events.event(object, 'Warning', `${reason}ContentObjectDeleteError`, `Failed to delete ${what} content API object`)
      throw error
    }
  }
}

/** The volume of a bound claim. @param what is to be taken of it */
export function volumeOfClaim(
  { informers }: CsiContext,
  claim: Frozen<PersistentVolumeClaim>,
  what: string,
  fail: (problem: string) => Error,
): Frozen<PersistentVolume> {
  const { volumeName } = claim.spec
  if (claim.status.phase !== 'Bound') throw fail(`the PVC ${claim.metadata.name} is not yet bound to a PV, will not attempt to take a ${what}`)
  const volume = informers.of(persistentVolumes).store.get(volumeName ?? '')
  if (!volume) throw fail(`failed to retrieve PV ${volumeName} from the API server: "persistentvolumes \\"${volumeName}\\" not found"`)
  if (!isBoundToClaim(volume, claim)) throw fail('claim in dataSource not bound or invalid')
  return volume
}

/** The driver's only class with the annotation. @param what `snapshot` or `group snapshot` */
function defaultClassOf(
  classes: readonly Frozen<VolumeSnapshotClass>[],
  driver: string,
  annotation: string,
  what: string,
  fail: (problem: string) => Error,
): Frozen<VolumeSnapshotClass> {
  const defaults = classes.filter((one) => one.driver === driver && ownValue(one.metadata.annotations, annotation) === 'true')
  const [only] = defaults
  if (only && defaults.length === 1) return only
  throw fail(only ? `${defaults.length} default snapshot classes were found` : `cannot find default ${what} class`)
}

/** A claim that is not bound yet gets the content of the snapshot. */
export function isBeingRestored({ informers }: CsiContext, { metadata }: Frozen<VolumeSnapshot>): boolean {
  return informers
    .of(persistentVolumeClaims)
    .store.list()
    .some(({ metadata: { namespace }, spec: { dataSource }, status }) => {
      const isOfSnapshot = dataSource !== undefined && namespace === metadata.namespace && dataSource.name === metadata.name && isSnapshotReference(dataSource)
      return isOfSnapshot && status.phase === 'Pending'
    })
}
