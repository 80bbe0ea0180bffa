/**
 * What a controller has written itself (L3): the next reconcile of an object begins when the caches hold what the last one wrote, so that no child is made
 * twice because the first is not seen yet; and a status that the controller has just written does not ask for another reconcile.
 * Upstream: the consistency store of pkg/controller/util (v1.36); controller-runtime leaves both to its users.
 */
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { afterWrites } from '#client/cache/readYourWrites'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { Client, Resource } from '#client/client'

type AnyInformer = SharedInformer<KubeObject>

export interface WriteGuardDeps {
  readonly client: Client
  readonly clock: Clock
  /** What the controller is about. */
  readonly primary: Resource<KubeObject>
  /** The cache of a resource; undefined: the controller does not read it from one. */
  readonly informerOf: (resource: Resource<KubeObject>) => AnyInformer | undefined
  /** Reconciles an object whose news had to wait for an answer. */
  readonly requeue: (key: string) => void
}

/** Longest wait of a reconcile for the caches; then it works on their current state. */
const limitMs = 10_000

/** Writes of one object's reconciles, to itself and to objects created for it. */
interface Written {
  /** The newest resourceVersion of each cache concerned. */
  readonly versions: Map<AnyInformer, string>
  /** Status writes of the object itself that are under way. */
  statusUnderWay: number
  /** The newest status of the object that the controller has written. */
  statusVersion: string | undefined
  /** News that came while a status write was under way: perhaps its own. */
  held: string[]
  wrote: boolean
}

export class WriteGuard {
  readonly #deps: WriteGuardDeps
  readonly #written = new Map<string, Written>()

  constructor(deps: WriteGuardDeps) {
    this.#deps = deps
  }

  /** Writes through it count for the object's reconcile. */
  clientFor(key: string): Client {
    const { client, informerOf, primary } = this.#deps
    const isPrimary = (resource: Resource<KubeObject>) => resource.group === primary.group && resource.resource === primary.resource
    return {
      transport: client.transport,
      of: (resource) => {
        const informer = informerOf(resource as unknown as Resource<KubeObject>)
        const guarded = afterWrites(client.of(resource), async (written) => {
          const mine = this.#of(key)
          mine.wrote = true
          const { resourceVersion } = written.metadata
          if (informer && resourceVersion) mine.versions.set(informer, newer(mine.versions.get(informer), resourceVersion))
          return written
        })
        if (!isPrimary(resource as unknown as Resource<KubeObject>)) return guarded
        return {
          ...guarded,
          updateStatus: (object, options) =>
            keyOf(object) === key ? this.#status(key, guarded.updateStatus(object, options)) : guarded.updateStatus(object, options),
          patch: (ref, type, body, options) =>
            options?.subresource === 'status' && keyOf({ metadata: ref }) === key
              ? this.#status(key, guarded.patch(ref, type, body, options))
              : guarded.patch(ref, type, body, options),
        }
      },
    }
  }

  /** Resolves when the caches hold what the object's last reconcile wrote, or after a while. */
  async caughtUp(key: string, signal: AbortSignal): Promise<void> {
    const versions = this.#written.get(key)?.versions
    if (!versions || versions.size === 0) return
    using limit = deadlineScope({ clock: this.#deps.clock, ms: limitMs }, signal)
    // The limit is no failure: a cache that selects may never see the object.
    await Promise.all([...versions].map(([informer, version]) => informer.caughtUp(version, limit.signal))).catch(() => {})
    versions.clear()
  }

  /** @returns whether something was written since the last time it was asked */
  takeWrote(key: string): boolean {
    const mine = this.#written.get(key)
    if (!mine?.wrote) return false
    mine.wrote = false
    return true
  }

  forget(key: string): void {
    this.#written.delete(key)
  }

  /** Whether an update is only the controller's own status, or may be: then its object is reconciled later, if it was not. */
  isOwnStatus(old: Frozen<KubeObject>, object: Frozen<KubeObject>): boolean {
    const mine = this.#written.get(keyOf(object))
    if (!mine || old === object || !isStatusOnly(old, object)) return false
    const version = object.metadata.resourceVersion ?? ''
    if (version === mine.statusVersion) return true
    if (mine.statusUnderWay === 0) return false
    mine.held.push(version)
    return true
  }

  async #status<W extends Frozen<KubeObject>>(key: string, write: Promise<W>): Promise<W> {
    const mine = this.#of(key)
    mine.statusUnderWay++
    try {
      const written = await write
      mine.statusVersion = written.metadata.resourceVersion
      return written
    } finally {
      mine.statusUnderWay--
      if (mine.statusUnderWay === 0) {
        const isForeign = mine.held.some((version) => version !== mine.statusVersion)
        mine.held = []
        if (isForeign) this.#deps.requeue(key)
      }
    }
  }

  #of(key: string): Written {
    let mine = this.#written.get(key)
    if (!mine) {
      mine = { versions: new Map(), statusUnderWay: 0, statusVersion: undefined, held: [], wrote: false }
      this.#written.set(key, mine)
    }
    return mine
  }
}

function newer(a: string | undefined, b: string): string {
  return a !== undefined && Number(a) > Number(b) ? a : b
}

/** Whether nothing else of the object is different. */
export function isStatusOnly(old: Frozen<KubeObject>, object: Frozen<KubeObject>): boolean {
  return semanticEqual(withoutStatus(old), withoutStatus(object))
}

function withoutStatus(object: Frozen<KubeObject>): object {
  const { status: _status, metadata, ...rest } = object as Frozen<KubeObject> & { readonly status?: unknown }
  const { resourceVersion: _version, managedFields: _managed, ...identity } = metadata
  return { ...rest, identity }
}
