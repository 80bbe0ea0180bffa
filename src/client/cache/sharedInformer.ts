/**
 * One cached, indexed view of a resource for any number of readers (L2): a reflector feeds the store, and handlers hear of each change
 * after the store has it, in order. A handler that comes late first hears of everything that is there. Handlers are synchronous and short:
 * they put keys on queues. Upstream: client-go/tools/cache/shared_informer.go with delta_fifo.go (v1.36).
 */
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import type { Timer } from '#base/clock'
import type { Resource, ResourceClient } from '../client.ts'
import type { WatchEvent } from '../transport.ts'
import { Indexer, type Indexers, type ReadableStore } from './indexer.ts'
import { createLister, type Lister } from './lister.ts'
import { type ReflectorDeps, type ReflectorOptions, type ReflectorTarget, runReflector } from './reflector.ts'

export interface EventHandler<T extends KubeObject> {
  onAdd?(object: Frozen<T>, isInInitialList: boolean): void
  /** Also called on resync and when a relist finds the same object, with `old === object` or an equal resourceVersion. */
  onUpdate?(old: Frozen<T>, object: Frozen<T>): void
  /** `finalStateUnknown`: the deletion was missed and noticed by a relist; the object is the last one we saw (upstream's tombstone). */
  onDelete?(object: Frozen<T>, finalStateUnknown: boolean): void
}

export interface HandlerRegistration {
  /** True once the handler has heard of the whole first state. */
  hasSynced(): boolean
  remove(): void
}

export interface SharedInformer<T extends KubeObject> {
  readonly resource: Resource<T>
  readonly store: ReadableStore<T>
  readonly lister: Lister<T>
  /** `resyncPeriodMs`: every so often the handler hears an update of each object. Default: never. */
  addHandler(handler: EventHandler<T>, options?: { readonly resyncPeriodMs?: number }): HandlerRegistration
  addIndexers(indexers: Indexers<T>): void
  /** True once the first state has arrived. */
  hasSynced(): boolean
  /** Resolves when {@link hasSynced} becomes true; rejects when aborted first. */
  synced(signal: AbortSignal): Promise<void>
  lastSyncResourceVersion(): string
  run(signal: AbortSignal): Promise<void>
}

interface Listener<T extends KubeObject> {
  readonly handler: EventHandler<T>
  readonly resyncPeriodMs: number | undefined
  timer: Timer | undefined
}

export function createSharedInformer<T extends KubeObject>(
  client: ResourceClient<T>,
  deps: ReflectorDeps,
  options: ReflectorOptions & { readonly indexers?: Indexers<T> } = {},
): SharedInformer<T> {
  const { indexers, ...reflectorOptions } = options
  return new Informer(client, deps, reflectorOptions, new Indexer<T>(indexers))
}

class Informer<T extends KubeObject> implements SharedInformer<T>, ReflectorTarget<T> {
  readonly resource: Resource<T>
  readonly store: Indexer<T>
  readonly lister: Lister<T>
  readonly #client: ResourceClient<T>
  readonly #deps: ReflectorDeps
  readonly #options: ReflectorOptions
  readonly #listeners = new Set<Listener<T>>()
  readonly #waiting = new Set<() => void>()
  #synced = false
  #resourceVersion = ''
  #running = false

  constructor(client: ResourceClient<T>, deps: ReflectorDeps, options: ReflectorOptions, store: Indexer<T>) {
    this.resource = client.resource
    this.store = store
    this.lister = createLister(store)
    this.#client = client
    this.#deps = deps
    this.#options = options
  }

  addHandler(handler: EventHandler<T>, options: { readonly resyncPeriodMs?: number } = {}): HandlerRegistration {
    const listener: Listener<T> = { handler, resyncPeriodMs: options.resyncPeriodMs || undefined, timer: undefined }
    this.#listeners.add(listener)
    for (const object of this.store.list()) this.#guard(() => handler.onAdd?.(object, true))
    if (this.#running) this.#armResync(listener)
    return {
      hasSynced: () => this.#synced,
      remove: () => {
        this.#listeners.delete(listener)
        listener.timer?.cancel()
      },
    }
  }

  addIndexers(indexers: Indexers<T>): void {
    this.store.addIndexers(indexers)
  }

  hasSynced(): boolean {
    return this.#synced
  }

  synced(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#synced) return resolve()
      if (signal.aborted) return reject(signal.reason)
      const done = () => {
        this.#waiting.delete(done)
        signal.removeEventListener('abort', abort)
        resolve()
      }
      const abort = () => {
        this.#waiting.delete(done)
        reject(signal.reason)
      }
      this.#waiting.add(done)
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
    if (this.#synced) return
    this.#synced = true
    for (const done of [...this.#waiting]) done()
  }

  apply(events: readonly WatchEvent<Frozen<T>>[], resourceVersion: string): void {
    this.#resourceVersion = resourceVersion
    for (const { type, object } of events) {
      if (type === 'DELETED') this.#remove(keyOf(object), object)
      else this.#put(object, false)
    }
  }

  #put(object: Frozen<T>, initial: boolean): void {
    const old = this.store.set(object)
    for (const { handler } of this.#listeners) {
      this.#guard(() => {
        if (old) handler.onUpdate?.(old, object)
        else handler.onAdd?.(object, initial)
      })
    }
  }

  #remove(key: string, final: Frozen<T> | undefined): void {
    const last = this.store.delete(key)
    if (!last) return
    for (const { handler } of this.#listeners) this.#guard(() => handler.onDelete?.(final ?? last, final === undefined))
  }

  #armResync(listener: Listener<T>): void {
    if (listener.resyncPeriodMs === undefined) return
    listener.timer?.cancel()
    listener.timer = this.#deps.clock.timer(listener.resyncPeriodMs, () => {
      for (const object of this.store.list()) this.#guard(() => listener.handler.onUpdate?.(object, object))
      this.#armResync(listener)
    })
  }

  /** One handler's fault must not keep the others, or the store, from the change. */
  #guard(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#deps.log.error(error, 'An event handler failed', { resource: this.resource.resource })
    }
  }
}
