/**
 * The store over any backend (L2): transactions are evaluated at once, become durable in groups, and only then are seen, announced and acknowledged.
 * One writer loop: while one group is being flushed the next one gathers, so writes in flight share a flush. Upstream: etcd's server/storage/mvcc.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type {
  AuthChange,
  AuthEntry,
  LeaseId,
  LocalStore,
  LocalWatchOptions,
  Op,
  Revision,
  Store,
  StoreEventBatch,
  StoreSnapshot,
  Transaction,
  TransactionResult,
  WrittenView,
} from '../store.ts'
import { isStoreError, storeError } from '../storeError.ts'
import { wantsSpace } from '../wantsSpace.ts'
import { AuthEntries } from './authEntries.ts'
import type { Backend, BackendChange, BackendState } from './backend.ts'
import { Leases } from './leases.ts'
import { MvccEngine, type Written } from './mvcc/engine.ts'
import { isTombstone, type Version } from './mvcc/keyHistory.ts'
import { StoreSnapshots } from './storeSnapshots.ts'
import { WatchHub } from './watchHub.ts'

/** Twice what etcd takes (1.5 MiB), as the limit of request bodies is: JSON is that much larger than protobuf. */
export const defaultMaxValueBytes = 3 * 1024 * 1024
/** Default of `MvccStoreOptions.maxLogBytes`. */
export const defaultMaxLogBytes = 32 << 20

export interface MvccStoreOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Recent changes kept in memory for watchers that resume. */
  readonly maxLogBytes: number
  /** Puts are refused with 'noSpace' beyond this; absent: no limit. */
  readonly quotaBytes?: number | undefined
  /** See Store; default: `defaultMaxValueBytes`. */
  readonly maxValueBytes?: number | undefined
}

interface Pending {
  /** Absent: nothing to write, only wait for earlier writes. */
  readonly change: BackendChange | undefined
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  /** Done after the changes of the group, while nothing is written. */
  readonly work?: (() => Promise<void>) | undefined
}

/** Replaced versions forgotten per step of a compaction; between steps the event loop gets its turn. */
const compactionStep = 512

/** Opens a store over what the backend remembers. */
export function createMvccStore(backend: Backend, state: BackendState, options: MvccStoreOptions): Promise<LocalStore> {
  return new MvccStore(backend, options).restore(state)
}

export class MvccStore implements LocalStore {
  readonly #backend: Backend
  readonly #options: MvccStoreOptions
  readonly #engine: MvccEngine
  readonly #hub: WatchHub
  readonly #leases: Leases
  readonly #snapshots: StoreSnapshots
  readonly #auth = new AuthEntries()
  readonly #view: WrittenView = {
    holds: (compare) => this.#engine.holds(compare),
    get: (key) => this.#engine.get(key),
    checkLease: (id) => this.#leases.check(id),
    bytesIn: (from, to, options) => this.#engine.bytesIn(from, to, options),
  }
  readonly maxValueBytes: number
  #queue: Pending[] = []
  #writing: Promise<void> | undefined
  #compacting: Promise<void> = Promise.resolve()
  #closed = false
  #expired = 0

  constructor(backend: Backend, options: MvccStoreOptions) {
    this.#backend = backend
    this.#options = options
    this.maxValueBytes = options.maxValueBytes ?? defaultMaxValueBytes
    this.#engine = new MvccEngine((version) => backend.load?.(version))
    this.#hub = new WatchHub(this.#engine, { forgetValues: backend.load !== undefined, maxLogBytes: options.maxLogBytes })
    this.#leases = new Leases(options.clock, (id) => this.#expireLease(id))
    this.#snapshots = new StoreSnapshots(this.#engine, backend)
  }

  async restore(state: BackendState): Promise<LocalStore> {
    for (const { id, ttlSeconds } of state.leases) this.#leases.add(id, ttlSeconds)
    this.#auth.apply(state.auth)
    this.#engine.restore(state.versions)
    for (const { key, lease } of this.#engine.leased()) this.#leases.move(key, 0, lease)
    if (state.compactRevision > 0) {
      // A restored snapshot may be compacted at a revision that no key has.
      this.#engine.advanceTo(state.compactRevision)
      this.#engine.startCompaction(state.compactRevision)
      await this.#forgetGarbage().catch((error: unknown) => {
        if (!isStoreError(error, 'noSpace')) throw error
        // The next start removes it.
        this.#options.log.warn('The disk is full: old versions of objects stay on it')
      })
    }
    return this
  }

  latestRevision(): Revision {
    return this.#engine.durableRevision
  }

  compactRevision(): Revision {
    return this.#engine.compactRevision
  }

  async range(...[from, to, options]: Parameters<Store['range']>): ReturnType<Store['range']> {
    this.#checkOpen()
    return this.#engine.range(from, to, options)
  }

  async transact(transaction: Transaction): Promise<TransactionResult> {
    this.#checkOpen()
    this.#checkSpace(transaction)
    const succeeded = transaction.compare.every((compare) => this.#engine.holds(compare))
    const { responses, revision } = await this.#durable(this.#write(succeeded ? transaction.success : (transaction.failure ?? [])))
    return { succeeded, responses, revision }
  }

  async transactWith<Prepared extends { readonly ops: readonly Op[] }>(
    prepare: (view: WrittenView) => Prepared,
  ): Promise<{ readonly prepared: Prepared } & Omit<TransactionResult, 'succeeded'>> {
    this.#checkOpen()
    const prepared = prepare(this.#view)
    this.#checkSpace({ success: prepared.ops })
    const { responses, revision } = await this.#durable(this.#write(prepared.ops))
    return { prepared, responses, revision }
  }

  watch(options: LocalWatchOptions, onBatch: (batch: StoreEventBatch) => void, signal: AbortSignal): Promise<void> {
    return this.#hub.watch(options, onBatch, signal)
  }

  async grantLease<Id extends LeaseId = number>(ttlSeconds: number, chosen?: Id): Promise<Id | number> {
    this.#checkOpen()
    const id = chosen ?? this.#leases.newId()
    await this.#append({ type: 'grantLease', id, ttlSeconds })
    this.#leases.add(id, ttlSeconds)
    return id
  }

  get leaseCount(): number {
    return this.#leases.count
  }

  get expiredLeaseCount(): number {
    return this.#expired
  }

  leaseIds(): readonly LeaseId[] {
    return this.#leases.ids()
  }

  lease(id: LeaseId): ReturnType<LocalStore['lease']> {
    return this.#leases.state(id)
  }

  leaseKeys(id: LeaseId): Iterable<string> {
    return this.#leases.keysOf(id)
  }

  authEntries(): readonly AuthEntry[] {
    return this.#auth.all()
  }

  async writeAuth(changes: readonly AuthChange[]): Promise<void> {
    this.#checkOpen()
    if (this.#isOverQuota() && this.#auth.grows(changes)) throw storeError('noSpace')
    await this.#append({ type: 'auth', changes })
    this.#auth.apply(changes)
  }

  async keepLeaseAlive(id: LeaseId): Promise<{ ttlSeconds: number }> {
    this.#checkOpen()
    return this.#leases.keepAlive(id)
  }

  async revokeLease(id: LeaseId): Promise<void> {
    this.#checkOpen()
    this.#leases.check(id)
    const { revision, versions } = this.#write([...this.#leases.keysOf(id)].sort().map((from) => ({ type: 'delete', from })))
    const { complete, takeBack } = this.#leases.beginEnd(id)
    // The deletions and the lease's end become durable in this order, in one group.
    const deleted = versions.length > 0 ? this.#append({ type: 'revision', revision, versions }) : undefined
    try {
      await Promise.all([deleted, this.#append({ type: 'revokeLease', id })])
    } catch (error) {
      takeBack()
      throw error
    }
    complete()
  }

  async compact(revision: Revision): Promise<void> {
    this.#checkOpen()
    this.#engine.startCompaction(revision)
    const recorded = this.#append({ type: 'compact', revision })
    const before = this.#compacting
    this.#compacting = (async () => {
      await before
      await recorded
      await this.#forgetGarbage()
    })()
    // The caller gets the failure; a later compaction also removes what this one left.
    const done = this.#compacting
    this.#compacting = done.catch(() => {})
    await done
  }

  snapshot(): Promise<StoreSnapshot> {
    if (this.#closed) return Promise.reject(storeError('closed'))
    return this.#snapshots.take({ leases: this.#leases.all(), auth: this.#auth.all() })
  }

  async defragment(): Promise<void> {
    this.#checkOpen()
    const before = this.#compacting
    const done = (async () => {
      await before
      await this.#append(undefined, () => this.#backend.defragment?.() ?? Promise.resolve())
    })()
    // A compaction removes from the file, so it waits as well.
    this.#compacting = done.catch(() => {})
    await done
  }

  async size(): ReturnType<Store['size']> {
    const { totalBytes, liveBytes } = this.#engine
    return { totalBytes: this.#backend.totalBytes?.() ?? totalBytes, liveBytes, historyBytes: Math.max(totalBytes - liveBytes, 0) }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#leases.close()
    this.#snapshots.close()
    await this.#compacting
    await this.#writing
    this.#hub.close()
    await this.#backend.close()
  }

  #checkOpen(): void {
    if (this.#closed) throw storeError('closed')
  }

  #checkSpace(branches: Pick<Transaction, 'success' | 'failure'>): void {
    if (hasLargerPut(branches, this.maxValueBytes)) throw storeError('tooLarge')
    if (this.#isOverQuota() && wantsSpace(branches)) throw storeError('noSpace')
  }

  #write(ops: readonly Op[]): Written {
    const written = this.#engine.write(ops, (id) => this.#leases.check(id))
    for (const version of written.versions) this.#leases.move(version.key, this.#engine.versionBefore(version)?.lease ?? 0, version.lease)
    return written
  }

  /** Resolves when nothing that the transaction wrote or read can be lost. */
  async #durable(written: Written): Promise<Written> {
    const { revision, versions } = written
    // A transaction that wrote nothing may have read what is not durable yet, so it waits as well.
    if (versions.length > 0) await this.#append({ type: 'revision', revision, versions })
    else if (revision > this.#engine.durableRevision) await this.#append(undefined)
    return written
  }

  #isOverQuota(): boolean {
    const { quotaBytes } = this.#options
    return quotaBytes !== undefined && (this.#backend.totalBytes?.() ?? this.#engine.totalBytes) > quotaBytes
  }

  #append(change: BackendChange | undefined, work?: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ change, resolve, reject, work })
      this.#writing ??= this.#writeLoop()
    })
  }

  async #writeLoop(): Promise<void> {
    // Start in the next microtask: all writes of this one share the first group, and watchers are not called from a writer's stack.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      await this.#backend.gather?.()
      const group = this.#queue
      this.#queue = []
      const changes = group.flatMap(({ change }) => (change ? [change] : []))
      try {
        if (changes.length > 0) await this.#backend.append(changes)
      } catch (error) {
        this.#takeBack(group, error)
        continue
      }
      for (const change of changes) {
        if (change.type !== 'revision') continue
        this.#engine.commit(change.versions)
        this.#hub.publish(change.revision, change.versions)
      }
      for (const { resolve, reject, work } of group) {
        if (work) await work().then(resolve, reject)
        else resolve()
      }
    }
    this.#writing = undefined
  }

  /** The group is not on the disk, and every later transaction was evaluated on top of it: roll all of them back and reject them. */
  #takeBack(group: readonly Pending[], cause: unknown): void {
    const error = isStoreError(cause) ? cause : storeError('unavailable', { cause })
    this.#options.log.error(cause, 'Writing to the store failed', { code: error.code })
    const failed = [...group, ...this.#queue]
    this.#queue = []
    for (const { change } of failed.toReversed()) {
      if (change?.type !== 'revision') continue
      for (const version of change.versions.toReversed()) this.#takeBackVersion(version)
    }
    for (const { reject } of failed) reject(error)
  }

  #takeBackVersion(version: Version): void {
    const before = this.#engine.versionBefore(version)
    this.#engine.rollback(version)
    this.#leases.move(version.key, isTombstone(version) ? 0 : version.lease, before?.lease ?? 0)
  }

  async #forgetGarbage(): Promise<void> {
    for (;;) {
      await this.#snapshots.allClosed()
      const some = this.#engine.compactSome(compactionStep)
      if (!some) return
      if (some.length > 0) await this.#backend.forget(some)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #expireLease(id: LeaseId): void {
    if (this.#closed) return
    const count = () => {
      this.#expired++
    }
    this.revokeLease(id).then(count, (error: unknown) => {
      if (isStoreError(error, 'leaseNotFound') || isStoreError(error, 'closed')) return
      this.#options.log.error(error, 'Deleting the keys of an expired lease failed; trying again', { lease: id })
    })
  }
}

function hasLargerPut({ success, failure = [] }: Pick<Transaction, 'success' | 'failure'>, maxBytes: number): boolean {
  const isLarger = (op: Op) => op.type === 'put' && op.value.length > maxBytes
  return success.some(isLarger) || failure.some(isLarger)
}
