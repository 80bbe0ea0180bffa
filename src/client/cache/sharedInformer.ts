/**
 * One cached, indexed view of a resource for any number of readers (L2): a reflector feeds the store, and handlers get each change
 * after the store has it, in order. A handler that is added late first gets all objects of the store. Handlers are synchronous and short:
 * they put keys on queues. Upstream: client-go/tools/cache/shared_informer.go with delta_fifo.go (v1.36).
 */
import { setMaxListeners } from 'node:events'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import type { Timer } from '#base/clock'
import type { Resource, ResourceClient } from '../client.ts'
import { isAtLeast } from '../resourceVersion.ts'
import type { WatchEvent } from '../transport.ts'
import { Indexer, type Indexers, type ReadableStore } from './indexer.ts'
import { createLister, type Lister } from './lister.ts'
import { type ReflectorDeps, type ReflectorOptions, type ReflectorTarget, runReflector } from './reflector.ts'
import type { Tallies } from './tally.ts'

export interface EventHandler<T extends KubeObject> {
  onAdd?(object: Frozen<T>, isInInitialList: boolean): void
  /** Also called on resync and when a relist finds the same object, with `old === object` or an equal resourceVersion. */
  onUpdate?(old: Frozen<T>, object: Frozen<T>): void
  /** `finalStateUnknown`: the deletion was missed and noticed by a relist; the object is the last one we saw (upstream's tombstone). */
  onDelete?(object: Frozen<T>, finalStateUnknown: boolean): void
}

export interface HandlerRegistration {
  /** True once the handler has got the whole first state. */
  hasSynced(): boolean
  remove(): void
}

export interface SharedInformer<T extends KubeObject> {
  readonly resource: Resource<T>
  readonly store: ReadableStore<T>
  readonly lister: Lister<T>
  /** `resyncPeriodMs`: the handler gets an update of each object this often. Default: never. */
  addHandler(handler: EventHandler<T>, options?: { readonly resyncPeriodMs?: number }): HandlerRegistration
  hasHandlers(): boolean
  addIndexers(indexers: Indexers<T>): void
  addTallies(tallies: Tallies<T>): void
  /** True once the first state has arrived. */
  hasSynced(): boolean
  /** Resolves when {@link hasSynced} becomes true; rejects when aborted first. */
  synced(signal: AbortSignal): Promise<void>
  lastSyncResourceVersion(): string
  /** Resolves when the store holds everything up to this resourceVersion; rejects when aborted first. */
  caughtUp(resourceVersion: string, signal: AbortSignal): Promise<void>
  run(signal: AbortSignal): Promise<void>
}

const objectFaults = {
  name: 'informer_object_faults_total',
  help: 'Objects that an index function, a transform or an event handler failed on.',
  labels: ['resource', 'what'],
}

interface Listener<T extends KubeObject> {
  readonly handler: EventHandler<T>
  readonly resyncPeriodMs: number | undefined
  timer: Timer | undefined
  removed: boolean
}

export interface SharedInformerOptions<T extends KubeObject> extends ReflectorOptions {
  readonly indexers?: Indexers<T> | undefined
  /** Reduces each object before the store and the handlers get it, to omit fields that no reader needs. Must keep the metadata's identity. */
  readonly transform?: ((object: Frozen<T>) => Frozen<T>) | undefined
}

export function createSharedInformer<T extends KubeObject>(
  client: ResourceClient<T>,
  deps: ReflectorDeps,
  options: SharedInformerOptions<T> = {},
): SharedInformer<T> {
  return new Informer(client, deps, options)
}

class Informer<T extends KubeObject> implements SharedInformer<T>, ReflectorTarget<T> {
  readonly resource: Resource<T>
  readonly store: Indexer<T>
  readonly lister: Lister<T>
  readonly #client: ResourceClient<T>
  readonly #deps: ReflectorDeps
  readonly #options: ReflectorOptions
  readonly #transform: ((object: Frozen<T>) => Frozen<T>) | undefined
  /** Replaced, never changed: a handler that is added during a delivery gets that change once, as part of the current state. */
  #listeners: readonly Listener<T>[] = []
  readonly #waiting = new Set<() => void>()
  #synced = false
  #resourceVersion = ''
  #running = false

  constructor(client: ResourceClient<T>, deps: ReflectorDeps, options: SharedInformerOptions<T>) {
    const { indexers, transform, ...reflectorOptions } = options
    this.resource = client.resource
    this.store = new Indexer<T>(indexers, (error, index, object) => this.#tell(error, `index ${index}`, object))
    this.lister = createLister(this.store)
    this.#client = client
    this.#deps = deps
    this.#options = reflectorOptions
    this.#transform = transform
  }

  addHandler(handler: EventHandler<T>, options: { readonly resyncPeriodMs?: number } = {}): HandlerRegistration {
    const listener: Listener<T> = { handler, resyncPeriodMs: options.resyncPeriodMs || undefined, timer: undefined, removed: false }
    this.#listeners = [...this.#listeners, listener]
    for (const object of this.store.list()) this.#guard(object, () => handler.onAdd?.(object, true))
    if (this.#running) this.#armResync(listener)
    return {
      hasSynced: () => this.#synced,
      remove: () => {
        listener.removed = true
        this.#listeners = this.#listeners.filter((other) => other !== listener)
        listener.timer?.cancel()
      },
    }
  }

  hasHandlers(): boolean {
    return this.#listeners.length > 0
  }

  addIndexers(indexers: Indexers<T>): void {
    this.store.addIndexers(indexers)
  }

  addTallies(tallies: Tallies<T>): void {
    this.store.addTallies(tallies)
  }

  hasSynced(): boolean {
    return this.#synced
  }

  synced(signal: AbortSignal): Promise<void> {
    return this.#until(() => this.#synced, signal)
  }

  caughtUp(resourceVersion: string, signal: AbortSignal): Promise<void> {
    return this.#until(() => isAtLeast(this.#resourceVersion, resourceVersion), signal)
  }

  /** Conditions can only become true when the reflector brings something. */
  #until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (holds()) return resolve()
      if (signal.aborted) return reject(signal.reason)
      const done = () => {
        if (!holds()) return
        this.#waiting.delete(done)
        signal.removeEventListener('abort', abort)
        resolve()
      }
      const abort = () => {
        this.#waiting.delete(done)
        reject(signal.reason)
      }
      this.#waiting.add(done)
      // Any number of waits may listen to one signal; Node warns from the eleventh on.
      setMaxListeners(0, signal)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  lastSyncResourceVersion(): string {
    return this.#resourceVersion
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#running) throw new Error(`the informer of ${this.resource.resource} runs already`)
    this.#running = true
    for (const listener of this.#listeners) this.#armResync(listener)
    try {
      await runReflector(this.#client, this, this.#deps, this.#options, signal)
    } finally {
      this.#running = false
      for (const listener of this.#listeners) listener.timer?.cancel()
    }
  }

  replace(items: readonly Frozen<T>[], resourceVersion: string): void {
    this.#resourceVersion = resourceVersion
    const initial = !this.#synced
    const gone = new Set(this.store.keys())
    for (const object of items) {
      gone.delete(keyOf(object))
      this.#put(object, initial)
    }
    for (const key of gone) this.#remove(key, undefined)
    this.#synced = true
    this.#wake()
  }

  apply(events: readonly WatchEvent<Frozen<T>>[], resourceVersion: string): void {
    this.#resourceVersion = resourceVersion
    for (const { type, object } of events) {
      if (type === 'DELETED') this.#remove(keyOf(object), object)
      else this.#put(object, false)
    }
    this.#wake()
  }

  #wake(): void {
    if (this.#waiting.size > 0) for (const done of [...this.#waiting]) done()
  }

  #put(arrived: Frozen<T>, initial: boolean): void {
    const object = this.#transformed(arrived)
    if (!object) return
    const old = this.store.set(object)
    for (const listener of this.#listeners) {
      if (listener.removed) continue
      this.#guard(object, () => {
        if (old) listener.handler.onUpdate?.(old, object)
        else listener.handler.onAdd?.(object, initial)
      })
    }
  }

  #remove(key: string, final: Frozen<T> | undefined): void {
    const last = this.store.delete(key)
    if (!last) return
    const object = (final && this.#transformed(final)) ?? last
    for (const listener of this.#listeners) {
      if (!listener.removed) this.#guard(object, () => listener.handler.onDelete?.(object, final === undefined))
    }
  }

  #armResync(listener: Listener<T>): void {
    if (listener.resyncPeriodMs === undefined) return
    listener.timer?.cancel()
    listener.timer = this.#deps.clock.timer(listener.resyncPeriodMs, () => {
      for (const object of this.store.list()) this.#guard(object, () => listener.handler.onUpdate?.(object, object))
      this.#armResync(listener)
    })
  }

  /** One handler's fault must not keep the others, or the store, from the change. */
  #guard(object: Frozen<T>, call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#tell(error, 'event handler', object)
    }
  }

  /** Undefined when the transform fails: the store keeps what it has of the object, as upstream's does. */
  #transformed(object: Frozen<T>): Frozen<T> | undefined {
    if (!this.#transform) return object
    try {
      return this.#transform(object)
    } catch (error) {
      this.#tell(error, 'transform', object)
      return undefined
    }
  }

  /** One object's fault must not keep the others from the store. */
  #tell(error: unknown, what: string, object: Frozen<T>): void {
    const { resource } = this.resource
    this.#deps.log.error(error, 'An informer could not take in an object', { resource, what, key: keyOf(object) })
    this.#deps.metrics?.counter(objectFaults).inc({ resource, what })
  }
}
