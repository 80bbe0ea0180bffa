/**
 * The steps that taking.ts and groupTaking.ts share (L3): they mark a content while the driver works for it, show failures in it, and delete it.
 * Upstream: external-snapshotter, pkg/sidecar-controller.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { formatTime } from '#base/time'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { Resource, ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import { StaleCacheError } from '#controllers/framework/reconciler'
import type { TextMap } from '../../server/csiTypes.ts'
import type { CsiContext } from '../context.ts'
import { setFinalizer } from '../finalizers.ts'
import { reservedPrefix } from '../provisioner/parameters.ts'
import { credentialsOf } from '../secrets.ts'
import { snapshotSecretKeys } from './snapshotNames.ts'
import type { SnapshotError } from './snapshotTypes.ts'

const defaultTimeoutMs = 60_000
const reserved = new Set(Object.values(snapshotSecretKeys).flatMap(({ secretName, secretNamespace }) => [secretName, secretNamespace]))

/** The driver has not finished; the content is looked at again after a wait. */
export class NotReadyError extends StaleCacheError {}

interface DriverContent extends KubeObject {
  spec: { driver: string }
  status?: { error?: SnapshotError | undefined } | undefined
}

export interface ContentNames {
  readonly finalizer: string
  readonly beingCreated: string
  readonly beingDeleted: string
  readonly secretName: string
  readonly secretNamespace: string
}

export interface Removal {
  /** The reason and the text of the event when it fails. */
  readonly reason: string
  readonly failure: string
  /** Fields of the status that do not hold any more. */
  readonly cleared: readonly string[]
  call(): Promise<unknown>
}

export class DriverContents<T extends DriverContent> {
  readonly timeoutMs: number
  readonly #context: CsiContext
  readonly #events: EventRecorder
  readonly #resource: Resource<T>
  readonly #client: ResourceClient<T>
  readonly #names: ContentNames

  constructor(context: CsiContext, resource: Resource<T>, names: ContentNames) {
    this.#context = context
    this.#events = context.events(`csi-snapshotter ${context.driver.name}`)
    this.#resource = resource
    this.#client = readYourWrites(context.client.of(resource), context.informers.of(resource), context.clock)
    this.#names = names
    this.timeoutMs = context.options.timeoutMs ?? defaultTimeoutMs
  }

  get(name: string): Frozen<T> | undefined {
    return this.#context.informers.of(this.#resource).store.get(name)
  }

  /** @param classDriver undefined when no class says otherwise */
  isOwn({ spec }: Frozen<T>, classDriver: string | undefined): boolean {
    const { name } = this.#context.driver
    return spec.driver === name && (classDriver ?? name) === name
  }

  secretsOf({ metadata }: Frozen<T>, signal: AbortSignal): Promise<TextMap> {
    const name = ownValue(metadata.annotations, this.#names.secretName)
    const namespace = ownValue(metadata.annotations, this.#names.secretNamespace)
    return credentialsOf(this.#context.client, name && namespace ? { name, namespace } : undefined, signal)
  }

  async patchStatus({ metadata }: Frozen<T>, status: object, signal: AbortSignal): Promise<Frozen<T>> {
    return this.#client.patch({ name: metadata.name ?? '' }, 'merge', { status }, { subresource: 'status', signal })
  }

  /** Content that has the annotation stays when it is deleted: the driver may be making what it stands for. */
  async setCreating({ metadata }: Frozen<T>, isCreating: boolean, signal: AbortSignal): Promise<void> {
    const { beingCreated } = this.#names
    const name = metadata.name ?? ''
    if ((ownValue(this.get(name)?.metadata.annotations, beingCreated) !== undefined) === isCreating) return
    await this.#client.patch({ name }, 'merge', { metadata: { annotations: { [beingCreated]: isCreating ? 'yes' : null } } }, { signal })
  }

  async showFailure(content: Frozen<T>, reason: string, message: string, signal: AbortSignal): Promise<void> {
    if (content.status?.error?.message === message) return
    this.#events.event(content, 'Warning', reason, message)
    await this.patchStatus(content, { readyToUse: false, error: { message, time: formatTime(this.#context.clock.now()) } }, signal)
  }

  /** @param isUnbound an administrator made the content, and nothing is bound to it */
  mustBeDeleted({ metadata }: Frozen<T>, isUnbound: boolean): boolean {
    if (metadata.deletionTimestamp === undefined) return false
    if (isUnbound) return true
    const { beingCreated, beingDeleted } = this.#names
    return ownValue(metadata.annotations, beingCreated) === undefined && ownValue(metadata.annotations, beingDeleted) !== undefined
  }

  /** @param removal undefined when the driver keeps what it has */
  async delete(content: Frozen<T>, removal: Removal | undefined, signal: AbortSignal): Promise<undefined> {
    let freed = content
    if (removal) {
      try {
        await removal.call()
      } catch (error) {
        if (!signal.aborted) this.#events.event(content, 'Warning', removal.reason, removal.failure)
        throw error
      }
      freed = await this.patchStatus(content, Object.fromEntries(removal.cleared.map((field) => [field, null])), signal)
    }
    await setFinalizer(this.#client, freed, this.#names.finalizer, false, signal)
  }
}

/** What the driver gets of a class's parameters. @throws Error for a reserved key that is unknown */
export function driverParameters(parameters: TextMap): TextMap {
  const unknown = Object.keys(parameters).find((key) => key.startsWith(reservedPrefix) && !reserved.has(key))
  if (unknown !== undefined)
    throw new Error(`failed to remove CSI Parameters of prefixed keys: found unknown parameter key "${unknown}" with reserved namespace ${reservedPrefix}`)
  return Object.fromEntries(Object.entries(parameters).filter(([key]) => !key.startsWith(reservedPrefix)))
}
