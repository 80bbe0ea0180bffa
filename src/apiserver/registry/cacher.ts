/**
 * Feeds every resource's watch cache from one read and one watch of the whole store (L3). Because that watch sees every revision, the
 * caches always know how current they are: a consistent read waits until they have reached the store's revision, with no progress
 * requests and no polling.
 * Upstream: apiserver/pkg/storage/cacher, one reflector per resource; here one for all, since the store is ours.
 */
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Store, StoreEvent, StoreEventBatch } from '#store/store'
import type { Cancellation } from '../cancellation.ts'
import { CacheEntry } from './cacheEntry.ts'
import { WatchCache } from './watchCache.ts'
import type { FieldIndex } from './watchGroups.ts'

const registryFrom = '/registry/'
const registryTo = '/registry0'
const bookmarkMs = 60_000
const reconnectMs = 1_000
/** How long a read waits for the caches to reach a revision, as upstream's blockTimeout. */
const freshnessWaitMs = 3_000

export interface CachedResource {
  /** Ends with '/'. */
  readonly prefix: string
  readonly indexes: readonly FieldIndex[]
}

interface Waiter {
  readonly revision: number
  resolve(): void
  reject(reason: unknown): void
}

export class Cacher {
  readonly #store: Store
  readonly #clock: Clock
  readonly #log: Logger
  readonly #caches = new Map<string, WatchCache>()
  /** Caches that are being filled, with what happened meanwhile. */
  readonly #filling = new Map<string, { event: StoreEvent; revision: number }[]>()
  #revision = 0
  #waiters: Waiter[] = []
  /** Nothing more comes: whoever waits would wait in vain. */
  #ended = false
  #loaded: Promise<void>
  #setLoaded: () => void = () => {}

  constructor(deps: { store: Store; clock: Clock; log: Logger }, resources: readonly CachedResource[]) {
    this.#store = deps.store
    this.#clock = deps.clock
    this.#log = deps.log
    for (const { prefix, indexes } of resources) this.#caches.set(prefix, new WatchCache(prefix, indexes))
    this.#loaded = new Promise((resolve) => {
      this.#setLoaded = resolve
    })
  }

  cache(prefix: string): WatchCache {
    const cache = this.#caches.get(prefix)
    if (!cache) throw new Error(`no watch cache for ${prefix}`)
    return cache
  }

  /** Adds a resource at run time. Resolves when its cache holds what the store has; its changes are followed from then on. */
  async add({ prefix, indexes }: CachedResource): Promise<WatchCache> {
    const cache = new WatchCache(prefix, indexes)
    this.#caches.set(prefix, cache)
    await this.#fill(prefix, cache)
    return cache
  }

  async #fill(prefix: string, cache: WatchCache): Promise<void> {
    if (this.#revision === 0) return this.#loaded
    const meanwhile: { event: StoreEvent; revision: number }[] = []
    this.#filling.set(prefix, meanwhile)
    try {
      const { kvs, revision } = await this.#store.range(prefix, `${prefix.slice(0, -1)}0`)
      // Everything has been read anew in the meantime, or the resource is gone again.
      if (this.#filling.get(prefix) !== meanwhile) return
      cache.load(
        kvs.map((kv) => CacheEntry.stored(kv.key.slice(prefix.length), kv.value, kv.modRevision, kv.createRevision)),
        revision,
      )
      const nowMs = this.#clock.now()
      for (const { event, revision: at } of meanwhile) cache.apply(event, at, nowMs)
    } finally {
      if (this.#filling.get(prefix) === meanwhile) this.#filling.delete(prefix)
    }
  }

  /** Takes a resource away that was added at run time; its watches end. */
  remove(prefix: string): void {
    this.#caches.get(prefix)?.closeWatches()
    this.#caches.delete(prefix)
    this.#filling.delete(prefix)
  }

  /** Everything at or below this revision has been taken in. 0 until the first load. */
  get revision(): number {
    return this.#revision
  }

  /** Resolves when the caches have been filled for the first time. */
  get loaded(): Promise<void> {
    return this.#loaded
  }

  /** Until the caches hold the newest acknowledged write. Resolves at once in the usual case. */
  waitUntilCurrent(cancellation?: Cancellation): Promise<void> | undefined {
    return this.waitFor(this.#store.currentRevision(), cancellation)
  }

  /** Until the caches have reached `revision`; undefined when they already have. Throws Timeout when they do not in time. */
  waitFor(revision: number, cancellation?: Cancellation): Promise<void> | undefined {
    if (this.#revision >= revision && this.#revision > 0) return undefined
    return this.#wait(revision, cancellation?.signal)
  }

  async #wait(revision: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#loaded
    if (this.#revision >= revision) return
    if (this.#ended) throw shuttingDown()
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        timer.cancel()
        signal?.removeEventListener('abort', onAbort)
        this.#waiters = this.#waiters.filter((other) => other !== waiter)
      }
      const waiter: Waiter = {
        revision,
        resolve: () => {
          leave()
          resolve()
        },
        reject: (reason) => {
          leave()
          reject(reason)
        },
      }
      const onAbort = () => waiter.reject(signal?.reason)
      const timer = this.#clock.timer(freshnessWaitMs, () => waiter.reject(tooLargeResourceVersion(revision, this.#revision)))
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiters.push(waiter)
    })
  }

  /** Loads, then follows the store until the signal aborts. A store watch that breaks ends all watches and starts over. */
  async run(signal: AbortSignal): Promise<void> {
    const bookmarks = this.#bookmarkLoop(signal)
    while (!signal.aborted) {
      try {
        await this.#loadAll()
        await this.#store.watch({ from: registryFrom, to: registryTo, startRevision: this.#revision + 1 }, (batch) => this.#apply(batch), signal)
      } catch (error) {
        if (!signal.aborted) this.#log.error(error, 'The store watch broke; reading everything again')
      }
      this.closeWatches()
      if (!signal.aborted) await this.#clock.sleep(reconnectMs, signal).catch(() => undefined)
    }
    this.#ended = true
    for (const waiter of [...this.#waiters]) waiter.reject(shuttingDown())
    await bookmarks
  }

  /** Ends every open watch; its client will come back, perhaps to another server. */
  closeWatches(): void {
    for (const cache of this.#caches.values()) cache.closeWatches()
  }

  async #loadAll(): Promise<void> {
    const { kvs, revision } = await this.#store.range(registryFrom, registryTo)
    this.#filling.clear()
    const entries = new Map<string, CacheEntry[]>()
    for (const prefix of this.#caches.keys()) entries.set(prefix, [])
    for (const kv of kvs) {
      const prefix = this.#prefixOf(kv.key)
      if (prefix !== undefined) entries.get(prefix)?.push(CacheEntry.stored(kv.key.slice(prefix.length), kv.value, kv.modRevision, kv.createRevision))
    }
    for (const [prefix, cache] of this.#caches) {
      // Watches that were opened while the store was out of reach have missed what happened since.
      cache.closeWatches()
      cache.load(entries.get(prefix) ?? [], revision)
    }
    this.#reached(revision)
    this.#setLoaded()
  }

  #apply(batch: StoreEventBatch): void {
    const nowMs = this.#clock.now()
    for (const event of batch.events) {
      const prefix = this.#prefixOf(event.kv.key)
      if (prefix === undefined) continue
      const filling = this.#filling.size === 0 ? undefined : this.#filling.get(prefix)
      if (filling) filling.push({ event, revision: batch.revision })
      else this.cache(prefix).apply(event, batch.revision, nowMs)
    }
    this.#reached(batch.revision)
  }

  #reached(revision: number): void {
    this.#revision = revision
    if (this.#waiters.length === 0) return
    for (const waiter of this.#waiters.filter((one) => one.revision <= revision)) waiter.resolve()
  }

  /** Prefixes are one or two segments below /registry/. */
  #prefixOf(key: string): string | undefined {
    let slash = key.indexOf('/', registryFrom.length)
    for (let depth = 0; depth < 2 && slash > 0; depth++) {
      const prefix = key.slice(0, slash + 1)
      if (this.#caches.has(prefix)) return prefix
      slash = key.indexOf('/', slash + 1)
    }
    return undefined
  }

  async #bookmarkLoop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(bookmarkMs, signal).catch(() => undefined)
      if (!signal.aborted) for (const cache of this.#caches.values()) cache.bookmark(this.#revision)
    }
  }
}

function shuttingDown(): StatusError {
  return new StatusError('ServiceUnavailable', 'apiserver is shutting down', { details: { retryAfterSeconds: 1 } })
}

/** Upstream: storage.NewTooLargeResourceVersionError. Clients retry after a second. */
export function tooLargeResourceVersion(wanted: number, current: number): StatusError {
  return new StatusError('Timeout', `Timeout: Too large resource version: ${wanted}, current: ${current}`, {
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }], retryAfterSeconds: 1 },
  })
}
