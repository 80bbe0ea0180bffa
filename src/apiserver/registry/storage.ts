/**
 * The registry's way to the store (L3): puts and deletes of one object with a compare on what the writer saw. It makes the canonical
 * bytes once and hands the parsed object to the watch cache, so that they are not parsed again.
 */
import type { KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Op, Store, TransactionResult } from '#store/store'
import type { RequestTracer } from '#trace/requestTracer'
import { maxBodyBytes } from '../core/body.ts'
import { isLargeObject, turn } from '../core/fairLoop.ts'
import { CacheEntry, encodedHead, encodeStored } from '../core/watch/cacheEntry.ts'
import type { Cacher } from './cacher.ts'
import type { StoredResource } from './storedResource.ts'
import { storeFailure, tooLarge } from './storeFailure.ts'

/** A lease is shared by expiring objects that are written within this time, or within a twentieth of a short TTL. Upstream: etcd3/lease_manager.go. */
const defaultLeaseReuseSeconds = 60

/**
 * Each request parses the registry's own JSON, so it has a limit besides the store's: twice what a request may send. It may be longer than the stored
 * value, since protobuf is short, and v1beta1 holds a schema once that all versions of a definition share.
 */
const maxPlainBytes = 2 * maxBodyBytes

export class Storage {
  readonly #store: Store
  readonly #cacher: Cacher
  readonly #clock: Clock
  readonly #leaseReuseSeconds: number
  readonly #leases = new Map<number, { id: number; untilMs: number }>()

  constructor(deps: { store: Store; cacher: Cacher; clock: Clock; leaseReuseSeconds?: number | undefined }) {
    this.#store = deps.store
    this.#cacher = deps.cacher
    this.#clock = deps.clock
    this.#leaseReuseSeconds = deps.leaseReuseSeconds ?? defaultLeaseReuseSeconds
  }

  /** The newest acknowledged state of one object. */
  async read(resource: StoredResource, key: string): Promise<CacheEntry | undefined> {
    await this.current()
    return resource.cache.get(key)
  }

  /** Resolves when the caches have the newest acknowledged write. */
  current(): Promise<void> | undefined {
    return this.#cacher.waitUntilCurrent()
  }

  /**
   * Writes `object` (of the storage version; it belongs to the registry from here on) over `current`, or creates it when there is none.
   * Undefined when another write came first.
   */
  async put(
    resource: StoredResource,
    key: string,
    object: KubeObject,
    current: CacheEntry | undefined,
    trace?: RequestTracer,
  ): Promise<CacheEntry | undefined> {
    const head = encodedHead(object)
    if (isLargeObject(head.length)) await turn()
    const plain = encodeStored(object, head)
    if (plain.length > maxPlainBytes) throw tooLarge()
    if (isLargeObject(plain.length)) await turn()
    const storeKey = resource.prefix + key
    const value = resource.cache.values.write(storeKey, plain, object)
    // Defaults and managed fields, which were added by the server, count too.
    if (value.length > this.#store.maxValueBytes) throw tooLarge()
    if (value !== plain && isLargeObject(plain.length)) await turn()
    const lease = resource.ttlSeconds === undefined ? undefined : await this.#lease(resource.ttlSeconds)
    const expected = resource.cache.expect(key, value, object, plain)
    const result = await this.#transact(storeKey, current, { type: 'put', key: storeKey, value, ...(lease === undefined ? {} : { lease }) }).catch((error) => {
      expected.done()
      throw error
    })
    if (!result.succeeded) {
      expected.done()
      return undefined
    }
    await this.#visible(resource, result.revision, trace)
    // A cache that has been rebuilt in the meantime has not asked for it.
    expected.done()
    // The cache has parsed the object, which is one long step; encoding the answer is another.
    if (isLargeObject(plain.length)) await turn()
    const cached = resource.cache.get(key)
    if (cached?.resourceVersion === result.revision) return cached
    // A newer write replaced this one already. Its value is parsed again, because `object` belongs to the cache's history now.
    return CacheEntry.stored(key, plain, result.revision, current?.createRevision ?? result.revision)
  }

  /**
   * Whether a new value would be stored differently, so that even an unchanged object is written: it has an older key, or is not encrypted.
   * @throws StatusError InternalError when it cannot be read
   */
  async isStale(resource: StoredResource, current: CacheEntry): Promise<boolean> {
    const storeKey = resource.prefix + current.key
    const { kvs } = await this.#store.range(storeKey)
    const [kv] = kvs
    // Another write came first: this one fails and is tried again.
    if (kv?.modRevision !== current.resourceVersion) return true
    return resource.cache.values.isStale(storeKey, kv.value)
  }

  /** The deletion's revision; undefined when another write came first. */
  async delete(resource: StoredResource, current: Pick<CacheEntry, 'key' | 'resourceVersion'>, trace?: RequestTracer): Promise<number | undefined> {
    const storeKey = resource.prefix + current.key
    const result = await this.#transact(storeKey, current, { type: 'delete', from: storeKey })
    if (!result.succeeded) return undefined
    await this.#visible(resource, result.revision, trace)
    return result.revision
  }

  /** Waits until the cache has the write; its watches have it then. */
  async #visible({ cache }: StoredResource, revision: number, trace: RequestTracer | undefined): Promise<void> {
    trace?.stored(revision)
    const wait = this.#cacher.waitFor(revision)
    if (wait) await wait
    trace?.passedOn(cache.watchersOf(revision))
  }

  async #transact(storeKey: string, current: Pick<CacheEntry, 'resourceVersion'> | undefined, op: Op): Promise<TransactionResult> {
    try {
      return await this.#store.transact({
        compare: [{ key: storeKey, target: 'mod', op: '=', value: current?.resourceVersion ?? 0 }],
        success: [op],
      })
    } catch (error) {
      throw storeFailure(error)
    }
  }

  async #lease(ttlSeconds: number): Promise<number> {
    const now = this.#clock.monotonicMs()
    const known = this.#leases.get(ttlSeconds)
    if (known && known.untilMs > now) return known.id
    const reuseSeconds = Math.min(this.#leaseReuseSeconds, Math.floor(ttlSeconds / 20))
    const id = await this.#store.grantLease(ttlSeconds + reuseSeconds)
    this.#leases.set(ttlSeconds, { id, untilMs: now + reuseSeconds * 1000 })
    return id
  }
}
