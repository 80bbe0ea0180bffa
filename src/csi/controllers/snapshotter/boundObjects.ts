/**
 * The steps that binding.ts and groupBinding.ts share (L3): they bind an object of a user to its content, and show the user progress and problems.
 * Upstream: external-snapshotter, pkg/common-controller.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { isBoundToClaim } from '#api/helpers/volumes'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import { formatTime } from '#base/time'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { NewObject, Resource, ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { CsiContext } from '../context.ts'
import { isSnapshotReference, type SnapshotError, type VolumeSnapshot, type VolumeSnapshotClass } from './snapshotTypes.ts'

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

interface UserObject extends KubeObject {
  status?: { error?: SnapshotError | undefined; creationTime?: string | undefined; readyToUse?: boolean | undefined } | undefined
}

export class BoundObjects<T extends UserObject, Content extends KubeObject> {
  readonly events: EventRecorder
  readonly objects: ResourceClient<T>
  readonly contents: ResourceClient<Content>
  readonly #context: CsiContext
  readonly #objectResource: Resource<T>
  readonly #contentResource: Resource<Content>

  constructor(context: CsiContext, objects: Resource<T>, contents: Resource<Content>) {
    this.#context = context
    this.#objectResource = objects
    this.#contentResource = contents
    this.events = context.events('snapshot-controller')
    const { client, clock, informers } = context
    this.objects = readYourWrites(client.of(objects), informers.of(objects), clock)
    this.contents = readYourWrites(client.of(contents), informers.of(contents), clock)
  }

  get(key: string): Frozen<T> | undefined {
    return this.#context.informers.of(this.#objectResource).store.get(key)
  }

  list(): readonly Frozen<T>[] {
    return this.#context.informers.of(this.#objectResource).store.list()
  }

  content(name: string): Frozen<Content> | undefined {
    return this.#context.informers.of(this.#contentResource).store.get(name)
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

  /** Writes what is new in the status, with an event for each step. @param about the object, in the events */
  async follow(object: Frozen<T>, next: Progress, kind: string, about: string, signal: AbortSignal): Promise<void> {
    const old = object.status
    const before = old as Readonly<Record<string, unknown>> | undefined
    if (Object.entries(next).every(([key, value]) => JSON.stringify(before?.[key] ?? null) === JSON.stringify(value))) return
    await this.#patchStatus(object, next, signal)
    if (!old?.creationTime && next.creationTime !== undefined)
      this.events.event(object, 'Normal', `${kind}Created`, `${about} was successfully created by the CSI driver.`)
    if (!old?.readyToUse && next.readyToUse) this.events.event(object, 'Normal', `${kind}Ready`, `${about} is ready to use.`)
  }

  /** The content that exists by then. @param fail says why there is none */
  async createContent(content: NewObject<Content>, fail: (problem: unknown) => Error, signal: AbortSignal): Promise<Frozen<Content>> {
    return this.contents.create(content, { signal }).catch((error: unknown) => {
      if (isStatus(error, 'AlreadyExists')) return this.contents.get({ name: content.metadata?.name ?? '' }, { signal })
      throw fail(error)
    })
  }

  /** The content names the object, and now its uid. */
  async claimContent({ metadata }: Frozen<Content>, spec: object, signal: AbortSignal): Promise<Frozen<Content>> {
    const { name = '', resourceVersion } = metadata
    return this.contents.patch({ name }, 'merge', { metadata: { resourceVersion }, spec }, { signal })
  }

  /** @param annotation tells the driver's controller that the object is being deleted */
  async markDeleted({ metadata }: Frozen<Content>, annotation: string, signal: AbortSignal): Promise<void> {
    if (ownValue(metadata.annotations, annotation) !== undefined) return
    await this.contents.patch({ name: metadata.name ?? '' }, 'merge', { metadata: { annotations: { [annotation]: 'yes' } } }, { signal })
  }

  async deleteContent(object: Frozen<T>, { metadata }: Frozen<Content>, [reason, message]: readonly [string, string], signal: AbortSignal): Promise<void> {
    if (metadata.deletionTimestamp !== undefined) return
    try {
      await this.contents.delete({ name: metadata.name ?? '' }, { signal })
    } catch (error) {
      if (isStatus(error, 'NotFound')) return
      this.events.event(object, 'Warning', reason, message)
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
export function defaultClassOf(
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
