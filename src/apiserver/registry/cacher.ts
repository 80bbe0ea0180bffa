/**
 * Feeds every resource's watch cache from one read and one watch of the whole store (L3). Because that watch reports every revision, the
 * caches always know how current they are: a consistent read waits until they have reached the store's revision.
 * A watch that breaks resumes after the last revision taken in. Only when that history is compacted, everything is read again, and the clients' watches
 * end: single changes are not known then, and a client that resumes gets 410 and lists again.
 * Upstream: apiserver/pkg/storage/cacher, one reflector per resource; here one for all, since the store is ours.
 */
import { StatusError } from '#api/machinery/status'
import { type AbortScope, abortScope } from '#base/abortScope'
import type { Clock, Timer } from '#base/clock'
import { append } from '#base/extremes'
import type { Logger } from '#base/log'
import { type Counter, type Metrics, noMetrics } from '#base/metrics'
import type { KeyValue, Store, StoreEventBatch, StoreWatchOptions } from '#store/store'
import { isStoreError } from '#store/storeError'
import type { Cancellation } from '../core/cancellation.ts'
import { shuttingDown } from '../core/shuttingDown.ts'
import { CacheEntry } from '../core/watch/cacheEntry.ts'
import { UnreadableValue } from '../core/watch/unreadableValue.ts'
import { RevisionTimes } from './revisionTimes.ts'
import { mayBeEncrypted, type StoredValues } from './storedValues.ts'
import { TimeSlices } from './timeSlices.ts'
import { type CacheEvent, cacheBudgets, type UnreadableEntry, WatchCache } from './watchCache.ts'
import type { FieldIndex } from './watchGroups.ts'

const registryFrom = '/registry/'
const registryTo = '/registry0'
const defaultBookmarkMs = 60_000
/** Pause after a watch of the store that ended, and after twice as long each time, as long as watches end soon: writes wait for the cache to show them. */
const reconnectMs = 50
const longestReconnectMs = 1_000
/** Keys read at once: an answer of a remote store stays small, and other requests get their turn. */
const pageKeys = 2_000
/** Objects that cannot be decrypted are tried again after this time, and after twice as long each time. */
const retryMs = 1_000
const longestRetryMs = 30_000
/** Objects of a resource that are checked when they are loaded; with `parsesLate`, those of a larger resource are checked when they are first asked for. */
const mostChecked = 1_000
/** How long a read waits for the caches to reach a revision, as upstream's blockTimeout. */
const freshnessWaitMs = 3_000

export interface CachedResource {
  /** Ends with '/'. */
  readonly prefix: string
  readonly indexes: readonly FieldIndex[]
  /** Absent: values are stored as plain text. */
  readonly values?: StoredValues | undefined
}

/** A batch whose values have been read. */
interface CacheBatch {
  readonly revision: number
  readonly events: readonly CacheEvent[]
}

interface Waiter {
  readonly revision: number
  resolve(): void
  reject(reason: unknown): void
}

export interface CacherDeps {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: Metrics | undefined
  /** How often watches get a bookmark; absent: each minute, as upstream. */
  readonly bookmarkMs?: number | undefined
  /** Objects that are loaded are parsed, and those of large resources checked, when they are first asked for: nothing in this process follows them. */
  readonly parsesLate?: boolean | undefined
}

export class Cacher {
  readonly #store: Store
  readonly #clock: Clock
  readonly #log: Logger
  readonly #bookmarkMs: number
  readonly #keeps: 'small' | 'none'
  readonly #decodeErrors: Counter
  readonly #caches = new Map<string, WatchCache>()
  readonly #budgets = cacheBudgets()
  /** When each revision was reached. */
  readonly times = new RevisionTimes()
  /** Caches that are being filled, with the events that arrived meanwhile. */
  readonly #filling = new Map<string, { event: CacheEvent; revision: number }[]>()
  /** Batches that arrived while a value's key is fetched. */
  #backlog: StoreEventBatch[] | undefined
  /** Ends the store watch. */
  #broken: AbortScope = abortScope()
  readonly #transformed: boolean
  /** When objects that cannot be read are tried again. */
  #retry: Timer | undefined
  #retryMs = retryMs
  #revision = 0
  readonly #waiters = new Set<Waiter>()
  /** Set after run() ends; new waiters are rejected. */
  #ended = false
  /** The next turn of run() reads all objects, because history is missing. */
  #mustLoad = true
  #loaded: Promise<void>
  #setLoaded: () => void = () => {}

  constructor(deps: CacherDeps, resources: readonly CachedResource[]) {
    this.#store = deps.store
    this.#decodeErrors = (deps.metrics ?? noMetrics).counter({
      name: 'apiserver_storage_decode_errors_total',
      help: 'Stored values that are no objects, by resource.',
      labels: ['group', 'resource'],
    })
    this.#clock = deps.clock
    this.#log = deps.log
    this.#bookmarkMs = deps.bookmarkMs ?? defaultBookmarkMs
    this.#keeps = deps.parsesLate ? 'none' : 'small'
    this.#transformed = resources.some(({ values }) => values?.transformed)
    for (const resource of resources) this.#caches.set(resource.prefix, this.#newCache(resource))
    this.#loaded = new Promise((resolve) => {
      this.#setLoaded = resolve
    })
  }

  #newCache({ prefix, indexes, values }: CachedResource): WatchCache {
    const failed = (key: string, error: unknown) => this.#log.error(error, 'A component failed on a change of an object', { key })
    return new WatchCache(prefix, indexes, values, this.#budgets, failed)
  }

  cache(prefix: string): WatchCache {
    const cache = this.#caches.get(prefix)
    if (!cache) throw new Error(`no watch cache for ${prefix}`)
    return cache
  }

  /** Adds a resource at run time. Resolves when its cache holds what the store has; its changes are followed from then on. */
  async add(resource: CachedResource): Promise<WatchCache> {
    const cache = this.#newCache(resource)
    this.#caches.set(resource.prefix, cache)
    await this.#fill(resource.prefix, cache)
    return cache
  }

  async #fill(prefix: string, cache: WatchCache): Promise<void> {
    if (this.#revision === 0) return this.#loaded
    const meanwhile: { event: CacheEvent; revision: number }[] = []
    this.#filling.set(prefix, meanwhile)
    try {
      const { kvs, revision } = await this.#readPages(prefix, `${prefix.slice(0, -1)}0`)
      const slices = new TimeSlices(this.#clock)
      const reading = await this.#decodeAll(cache, kvs, await this.#decryptAll(cache, kvs, slices), slices)
      // Meanwhile a complete new reading began, or the resource was removed.
      if (this.#filling.get(prefix) !== meanwhile) return
      for (const call of this.#load(reading, revision)) call()
      for (const { event, revision: at } of meanwhile) this.#applyTo(cache, event, at, this.#clock.now())
    } finally {
      if (this.#filling.get(prefix) === meanwhile) this.#filling.delete(prefix)
    }
  }

  /** Takes a resource away that was added at run time; its watches end. */
  remove(prefix: string): void {
    this.#caches.get(prefix)?.close()
    this.#caches.delete(prefix)
    this.#filling.delete(prefix)
  }

  /** All changes up to this revision have been applied. 0 until the first load. */
  get revision(): number {
    return this.#revision
  }

  /** Resolves when the caches have been filled for the first time. */
  get loaded(): Promise<void> {
    return this.#loaded
  }

  /** Resolves when the caches have the newest acknowledged write; undefined if they already do, which is usual. */
  waitUntilCurrent(cancellation?: Cancellation): Promise<void> | undefined {
    const latest = this.#store.latestRevision(cancellation)
    return typeof latest === 'number' ? this.waitFor(latest, cancellation) : latest.then((revision) => this.waitFor(revision, cancellation))
  }

  /** Resolves when the caches have reached `revision`; undefined if they already have. Rejects with Timeout if they do not in time. */
  waitFor(revision: number, cancellation?: Cancellation): Promise<void> | undefined {
    if (this.#revision >= revision && this.#revision > 0) return undefined
    return this.#wait(revision, cancellation?.signal)
  }

  async #wait(revision: number, signal: AbortSignal | undefined): Promise<void> {
    // The first reading has no limit of time of its own.
    if (this.#revision === 0) await this.#reaching(1, signal, undefined)
    if (this.#revision < revision) await this.#reaching(revision, signal, freshnessWaitMs)
  }

  /** Resolves at `revision`. Rejects when the limit has passed, when the signal fires, and when the cacher ends or has ended. */
  async #reaching(revision: number, signal: AbortSignal | undefined, limitMs: number | undefined): Promise<void> {
    if (this.#ended) throw shuttingDown()
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        timer?.cancel()
        signal?.removeEventListener('abort', onAbort)
        this.#waiters.delete(waiter)
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
      const isLate = () => waiter.reject(tooLargeResourceVersion(revision, this.#revision))
      const timer = limitMs === undefined ? undefined : this.#clock.timer(limitMs, isLate)
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiters.add(waiter)
    })
  }

  /** Loads, then follows the store until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const bookmarks = this.#bookmarkLoop(signal)
    let pauseMs = reconnectMs
    while (!signal.aborted) {
      const begunMs = this.#clock.monotonicMs()
      try {
        if (this.#mustLoad) await this.#loadAll()
        await this.#follow(signal)
      } catch (error) {
        if (isStoreError(error, 'compacted')) this.#mustLoad = true
        if (!signal.aborted) this.#log.error(error, this.#mustLoad ? 'The store watch ended; reading everything again' : 'The store watch ended; resuming')
      }
      if (this.#clock.monotonicMs() - begunMs >= longestReconnectMs) pauseMs = reconnectMs
      if (!signal.aborted) await this.#clock.sleep(pauseMs, signal).catch(() => undefined)
      pauseMs = Math.min(longestReconnectMs, 2 * pauseMs)
    }
    this.closeWatches()
    this.#ended = true
    this.#retry?.cancel()
    for (const waiter of this.#waiters) waiter.reject(shuttingDown())
    await bookmarks
  }

  async #follow(signal: AbortSignal): Promise<void> {
    using broken = abortScope(signal)
    this.#broken = broken
    // Batches that wait for a key are delivered again.
    this.#backlog = undefined
    const options: StoreWatchOptions = {
      from: registryFrom,
      to: registryTo,
      startRevision: this.#revision + 1,
      onProgress: (revision) => this.#take({ revision, events: [] }),
    }
    await this.#store.watch(options, (batch) => this.#take(batch), broken.signal)
  }

  /** Ends every open watch; its client opens a new one, perhaps at another server. */
  closeWatches(): void {
    for (const cache of this.#caches.values()) cache.closeWatches()
  }

  async #loadAll(): Promise<void> {
    const { kvs, revision } = await this.#readPages(registryFrom, registryTo)
    this.#filling.clear()
    this.#backlog = undefined
    const read = new Set<WatchCache>()
    // Resources may be added while a key is fetched: each pass reads those that were added during the one before.
    const unread = () => [...this.#caches].filter(([prefix, cache]) => !read.has(cache) && !this.#filling.has(prefix))
    for (let caches = unread(); caches.length > 0; caches = unread()) {
      const byPrefix = this.#byPrefix(kvs)
      const slices = new TimeSlices(this.#clock)
      const encrypted = caches.map(([prefix, cache]) => ({ cache, kvs: byPrefix.get(prefix) ?? [] }))
      const decrypted = await Promise.all(encrypted.map((one) => this.#decryptAll(one.cache, one.kvs, slices)))
      // One after another: they share the turns.
      const readings: Reading[] = []
      for (const [at, one] of encrypted.entries()) readings.push(await this.#decodeAll(one.cache, one.kvs, decrypted[at] ?? [], slices))
      for (const { cache } of encrypted) read.add(cache)
      for (const call of readings.flatMap((reading) => this.#load(reading, revision))) {
        call()
        await slices.next()
      }
    }
    this.#mustLoad = false
    this.#reached(revision, this.#clock.now())
    this.#setLoaded()
  }

  #byPrefix(kvs: readonly KeyValue[]): ReadonlyMap<string, readonly KeyValue[]> {
    const byPrefix = new Map<string, KeyValue[]>()
    for (const prefix of this.#caches.keys()) byPrefix.set(prefix, [])
    for (const kv of kvs) {
      const prefix = this.#prefixOf(kv.key)
      if (prefix !== undefined) byPrefix.get(prefix)?.push(kv)
    }
    return byPrefix
  }

  /** All of a range as of one revision. @throws StoreError 'compacted' when that is forgotten before the last page is read */
  async #readPages(from: string, to: string): Promise<{ readonly kvs: readonly KeyValue[]; readonly revision: number }> {
    const kvs: KeyValue[] = []
    let revision: number | undefined
    for (let next = from; ; ) {
      const page = await this.#store.range(next, to, { limit: pageKeys, revision })
      append(kvs, page.kvs)
      revision ??= page.revision
      const last = page.kvs.at(-1)
      if (!page.more || !last) return { kvs, revision }
      next = `${last.key}\0`
      await this.#clock.turn()
    }
  }

  /** Decrypts all values. They wait for their keys together: a key service that is down delays them by one of its timeouts. */
  async #decryptAll(cache: WatchCache, kvs: readonly KeyValue[], slices: TimeSlices): Promise<readonly (Uint8Array | UnreadableValue)[]> {
    const decrypted: (Uint8Array | UnreadableValue | Promise<Uint8Array | UnreadableValue>)[] = []
    let waits = false
    for (const kv of kvs) {
      const value = cache.values.decrypt(kv.key, kv.value)
      waits ||= value instanceof Promise
      decrypted.push(value)
      const pause = slices.next()
      if (pause) await pause
    }
    return waits ? Promise.all(decrypted) : (decrypted as (Uint8Array | UnreadableValue)[])
  }

  /** Decoding a large object of another version takes as long as parsing it: others may get a turn between the two. */
  async #decodeAll(cache: WatchCache, kvs: readonly KeyValue[], decrypted: readonly (Uint8Array | UnreadableValue)[], slices: TimeSlices): Promise<Reading> {
    const entries: CacheEntry[] = []
    const unreadable: UnreadableEntry[] = []
    const isLate = this.#keeps === 'none' && kvs.length > mostChecked
    const read = (key: string, plain: Uint8Array, { modRevision, createRevision }: KeyValue) =>
      isLate ? CacheEntry.late(key, plain, modRevision, createRevision) : CacheEntry.read(key, plain, modRevision, createRevision, this.#keeps)
    for (const [at, kv] of kvs.entries()) {
      const plain = cache.values.decode(decrypted[at] as Uint8Array | UnreadableValue)
      const decoded = slices.next()
      if (decoded) await decoded
      const key = kv.key.slice(cache.prefix.length)
      const value = plain instanceof UnreadableValue ? plain : read(key, plain, kv)
      if (value instanceof UnreadableValue) unreadable.push({ kv, value })
      else entries.push(value)
      const parsed = slices.next()
      if (parsed) await parsed
    }
    return { cache, entries, unreadable }
  }

  /** @returns the calls of the cache's listeners, each of which may parse a large object: the caller can spread them over turns */
  #load({ cache, entries, unreadable }: Reading, revision: number): (() => void)[] {
    const changes = cache.load(entries, revision, unreadable, this.#clock.now())
    for (const { kv, value } of unreadable) this.#reportUnreadable(cache, kv.key, value)
    return changes.map((change) => () => cache.callListeners(change))
  }

  /** Applies a batch at once, unless it has values whose key must be fetched first: the following batches then wait. */
  #take(batch: StoreEventBatch): void {
    if (this.#backlog) {
      this.#backlog.push(batch)
      return
    }
    const read = this.#transformed || holdsEncrypted(batch) ? this.#read(batch) : batch
    if (read instanceof Promise) this.#applyLater(read)
    else this.#apply(read)
  }

  #applyLater(read: Promise<CacheBatch>): void {
    const backlog: StoreEventBatch[] = []
    this.#backlog = backlog
    const broken = this.#broken
    this.#catchUp(read, backlog).catch((error) => {
      this.#log.error(error, 'Events of the store could not be applied')
      this.#mustLoad = true
      broken.abort()
    })
  }

  async #catchUp(first: Promise<CacheBatch>, backlog: StoreEventBatch[]): Promise<void> {
    for (let batch: CacheBatch | Promise<CacheBatch> | undefined = first; batch; ) {
      const ready: CacheBatch = batch instanceof Promise ? await batch : batch
      // Meanwhile a complete new reading began.
      if (this.#backlog !== backlog) return
      this.#apply(ready)
      const next = backlog.shift()
      batch = next && this.#read(next)
    }
    this.#backlog = undefined
  }

  #read(batch: StoreEventBatch): CacheBatch | Promise<CacheBatch> {
    let changed: (CacheEvent | Promise<CacheEvent>)[] | undefined
    let waits = false
    for (const [at, event] of batch.events.entries()) {
      const prefix = this.#prefixOf(event.kv.key)
      const read = prefix === undefined ? event : this.cache(prefix).read(event)
      if (read === event) continue
      changed ??= [...batch.events]
      changed[at] = read
      waits ||= read instanceof Promise
    }
    if (!changed) return batch
    const { revision } = batch
    return waits ? Promise.all(changed).then((events) => ({ revision, events })) : { revision, events: changed as CacheEvent[] }
  }

  #apply(batch: CacheBatch): void {
    const nowMs = this.#clock.now()
    for (const event of batch.events) {
      const prefix = this.#prefixOf(event.kv.key)
      if (prefix === undefined) continue
      const filling = this.#filling.size === 0 ? undefined : this.#filling.get(prefix)
      if (filling) filling.push({ event, revision: batch.revision })
      else this.#applyTo(this.cache(prefix), event, batch.revision, nowMs)
    }
    this.#reached(batch.revision, nowMs)
  }

  #applyTo(cache: WatchCache, event: CacheEvent, revision: number, nowMs: number): void {
    const unreadable = cache.apply(event, revision, nowMs)
    if (unreadable) this.#reportUnreadable(cache, event.kv.key, unreadable)
  }

  #reportUnreadable(cache: WatchCache, key: string, { error, isDamaged }: UnreadableValue): void {
    if (isDamaged) {
      this.#decodeErrors.inc(cache.values.groupResource)
      this.#log.error(error, 'A stored value is no object; the other ones are served', { key })
      return
    }
    this.#log.error(error, 'failed to decrypt data', { key })
    this.#retry ??= this.#clock.timer(this.#retryMs, () => void this.readAgain())
  }

  /** Tries the unreadable objects again: a key may have been added, or its service may be back. */
  async readAgain(): Promise<void> {
    this.#retry?.cancel()
    this.#retry = undefined
    const failed = await Promise.all([...this.#caches.values()].flatMap((cache) => cache.unreadable.map((entry) => this.#failsAgain(cache, entry))))
    this.#retryMs = failed.includes(true) ? Math.min(2 * this.#retryMs, longestRetryMs) : retryMs
    if (failed.includes(true) && !this.#ended) this.#retry ??= this.#clock.timer(this.#retryMs, () => void this.readAgain())
  }

  /** Never rejects: one object does not keep the others from being tried again. */
  async #failsAgain(cache: WatchCache, entry: UnreadableEntry): Promise<boolean> {
    const { key, value: stored } = entry.kv
    // Only a missing key can be added later; damage stays.
    if (entry.value.isDamaged) return false
    try {
      const value = await cache.values.read(key, stored)
      if (value instanceof UnreadableValue) return true
      cache.reveal(entry, value, this.#revision)
    } catch (error) {
      this.#log.error(error, 'An object that could not be read could not be taken in again', { key })
    }
    return cache.unreadable.includes(entry)
  }

  #reached(revision: number, nowMs: number): void {
    this.#revision = revision
    this.times.note(revision, nowMs)
    // Each one that is resolved leaves the set.
    for (const waiter of this.#waiters) if (waiter.revision <= revision) waiter.resolve()
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
      await this.#clock.sleep(this.#bookmarkMs, signal).catch(() => undefined)
      if (!signal.aborted) for (const cache of this.#caches.values()) cache.bookmark(this.#revision)
    }
  }
}

function holdsEncrypted({ events }: StoreEventBatch): boolean {
  for (const { kv } of events) if (mayBeEncrypted(kv.value)) return true
  return false
}

interface Reading {
  readonly cache: WatchCache
  readonly entries: readonly CacheEntry[]
  readonly unreadable: readonly UnreadableEntry[]
}

/** Upstream: storage.NewTooLargeResourceVersionError. Clients retry after a second. */
export function tooLargeResourceVersion(wanted: number, current: number): StatusError {
  return new StatusError('Timeout', `Timeout: Too large resource version: ${wanted}, current: ${current}`, {
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }], retryAfterSeconds: 1 },
  })
}
