/**
 * The store's contract (L2): etcd's model over keys, bytes and revisions. It knows no kinds, and assumes nothing local: the newest revision may have
 * to be asked for, a watch may break and resumes from the revision after the last one delivered, and the outcome of a write may stay unknown.
 * Keys are byte strings: JavaScript strings with one char per byte, ordered by byte; Kubernetes' keys are ASCII.
 * Every driver passes src/testing/storeConformance.ts.
 */

export type Revision = number

/** A bigint where a number would not be exact: etcd's own ids have 63 bits. 0 for none. */
export type LeaseId = number | bigint

export interface KeyValue {
  readonly key: string
  readonly value: Uint8Array
  readonly createRevision: Revision
  readonly modRevision: Revision
  /** 1 at creation, +1 at each put. */
  readonly version: number
  readonly lease: LeaseId
}

export interface RangeOptions {
  /** Read as of this revision; absent: the newest. Throws StoreError 'compacted' or 'futureRevision'. */
  readonly revision?: Revision | undefined
  /** At most this many; the result says whether there are more. */
  readonly limit?: number | undefined
  readonly countOnly?: boolean | undefined
  readonly keysOnly?: boolean | undefined
}

export interface RangeResult {
  readonly kvs: readonly KeyValue[]
  /** How many keys the range holds, regardless of the limit. */
  readonly count: number
  readonly more: boolean
  /** The store's revision when it answered. */
  readonly revision: Revision
}

export interface ReadView {
  /** `to` absent: the one key. Otherwise the half-open range [from, to). */
  range(from: string, to?: string, options?: RangeOptions): Promise<RangeResult>
}

export type CompareTarget = 'version' | 'create' | 'mod' | 'lease' | 'value'

export interface Compare {
  readonly key: string
  /**
   * Absent: the one key. Otherwise each key of the half-open range [key, to) must hold; a range without keys is compared as a key that does not exist.
   */
  readonly to?: string | undefined
  readonly target: CompareTarget
  readonly op: '=' | '!=' | '<' | '>'
  readonly value: number | bigint | Uint8Array
}

export type Op =
  | { readonly type: 'range'; readonly from: string; readonly to?: string | undefined; readonly options?: RangeOptions | undefined }
  | { readonly type: 'put'; readonly key: string; readonly value: Uint8Array; readonly lease?: LeaseId | undefined }
  | { readonly type: 'delete'; readonly from: string; readonly to?: string | undefined }

export type OpResult =
  | { readonly type: 'range'; readonly result: RangeResult }
  | { readonly type: 'put' }
  | { readonly type: 'delete'; readonly deleted: number }

export interface Transaction {
  readonly compare: readonly Compare[]
  readonly success: readonly Op[]
  readonly failure?: readonly Op[] | undefined
}

export interface TransactionResult {
  readonly succeeded: boolean
  readonly responses: readonly OpResult[]
  /** The revision the writes got, or the current one when nothing was written. All writes of one transaction share it. */
  readonly revision: Revision
}

/** What is written when a transaction is carried out, whether it is durable yet or not. */
export interface WrittenView {
  holds(compare: Compare): boolean
  /** Undefined when the key does not exist. */
  get(key: string): KeyValue | undefined
  /** @throws StoreError 'leaseNotFound' */
  checkLease(id: LeaseId): void
  /** Bytes of the keys and values that a range finds, without reading the values. */
  bytesIn(from: string, to?: string, options?: RangeOptions): number
}

export type StoreEventType = 'put' | 'delete'

export interface StoreEvent {
  readonly type: StoreEventType
  /** For a delete: value is empty, modRevision is the deletion's. */
  readonly kv: KeyValue
  /** The version before, where the watch asked for it and it is not compacted. */
  readonly previous?: KeyValue | undefined
}

/** All events of one revision arrive together; batches come in revision order, none twice, none missing. */
export interface StoreEventBatch {
  readonly revision: Revision
  readonly events: readonly StoreEvent[]
}

export interface StoreWatchOptions {
  readonly from: string
  readonly to?: string | undefined
  /** First revision wanted; absent: from now on. An already compacted one ends the watch with StoreError 'compacted'. */
  readonly startRevision?: Revision | undefined
  readonly previous?: boolean | undefined
  /** Called after everything of the range up to `revision` was delivered, where the batches alone do not show it: other keys have changed. */
  readonly onProgress?: ((revision: Revision) => void) | undefined
}

export interface StoreError extends Error {
  /** 'unknownOutcome': the write may or may not have been carried out, now or later. After every other code it was not. */
  readonly code: 'compacted' | 'futureRevision' | 'leaseNotFound' | 'noSpace' | 'tooLarge' | 'closed' | 'unavailable' | 'unknownOutcome'
  /** For 'compacted': the compaction's revision. */
  readonly revision?: Revision | undefined
}

/** The consensus of a store with members, as the member that answered knows it. */
export interface RaftState {
  readonly isLeader: boolean
  /** False: the members have elected no leader, and no write succeeds. */
  readonly hasLeader: boolean
  readonly term: number
  /** The last entry of the log, and the last one that is applied. */
  readonly index: number
  readonly appliedIndex: number
}

export interface StoreSize {
  readonly totalBytes: number
  readonly liveBytes: number
  readonly historyBytes?: number
  /** Absent: the store has no members. */
  readonly raft?: RaftState
}

export interface Store extends ReadView {
  /** A put of a larger value is refused with 'tooLarge'. */
  readonly maxValueBytes: number
  /**
   * The newest revision that is durable and readable, at the time of the call or later. Starts at 1 in an empty store, as etcd's. A local store
   * answers at once and never asks for the signal.
   */
  latestRevision(cancellable?: { readonly signal: AbortSignal }): Revision | Promise<Revision>
  /** Resolves when the writes are durable. Writes in flight together share one flush. */
  transact(transaction: Transaction): Promise<TransactionResult>
  /**
   * Calls `onBatch` in order, only with durable writes, until the signal aborts (then resolves) or the watch fails (then rejects). A remote store refuses a watch
   * from the revision of a compaction on, with 'compacted': etcd may have dropped a deletion there.
   */
  watch(options: StoreWatchOptions, onBatch: (batch: StoreEventBatch) => void, signal: AbortSignal): Promise<void>
  /** Grants a lease of `ttlSeconds`; its keys are deleted when it runs out. */
  grantLease(ttlSeconds: number): Promise<number>
  keepLeaseAlive(id: LeaseId): Promise<{ ttlSeconds: number }>
  revokeLease(id: LeaseId): Promise<void>
  /** Forgets what was overwritten or deleted before `revision`; reads and watches below it fail with 'compacted'. */
  compact(revision: Revision): Promise<void>
  /**
   * Bytes on disk (or in memory) and bytes that live data needs. `historyBytes`: keys and values of replaced versions that are not compacted; absent where
   * the store does not count them apart, and `liveBytes` includes them.
   */
  size(): Promise<StoreSize>
  /** Everything acknowledged is on disk afterwards; later calls fail with 'closed'. */
  close(): Promise<void>
}

export interface LocalWatchOptions extends StoreWatchOptions {
  /** Called once, when every change made before was delivered. */
  readonly onLive?: (() => void) | undefined
}

/** A change of a key as the store keeps it; `version` 0: the key was deleted. */
export interface StoredChange extends KeyValue {
  /** Position among the changes of its revision. */
  readonly sub: number
}

/** The buckets of etcd's database for users and roles. */
export const authBuckets = ['auth', 'authRoles', 'authUsers'] as const
export type AuthBucket = (typeof authBuckets)[number]

/** An entry of such a bucket. It is no key of the store and has no revision. */
export interface AuthEntry {
  readonly bucket: AuthBucket
  /** One char per byte, as in the store's keys. */
  readonly key: string
  readonly value: Uint8Array
}

/** An entry as it is from now on; without a value: it is removed. */
export type AuthChange = Omit<AuthEntry, 'value'> & { readonly value?: Uint8Array | undefined }

/** Absent members: all. */
export interface WantedChanges {
  readonly after?: Revision
  readonly to?: Revision
  /** The values of other keys are not read. */
  readonly includes?: (key: string) => boolean
}

/** The store as it was at one revision, with the history that it kept. Writes continue meanwhile. */
export interface StoreSnapshot {
  readonly revision: Revision
  /** See LocalStore. */
  readonly compactRevision: Revision
  readonly leases: readonly { readonly id: LeaseId; readonly ttlSeconds: number }[]
  readonly auth: readonly AuthEntry[]
  /** The changes in order, without those that etcd removes by the compaction. Each list is read in one turn of the event loop. */
  changes(wanted?: WantedChanges): AsyncIterable<readonly StoredChange[]>
  /** Whether a reader at the revision meets this change: it is the newest one of its key, and no deletion. */
  isLiveAt(change: StoredChange, revision: Revision): boolean
  /** Compaction removes nothing before this call. */
  close(): void
}

/** A store of this process, which knows more than the contract asks for: what etcd's API needs in addition. */
export interface LocalStore extends Store {
  latestRevision(): Revision
  /** The newest compaction; 0: none. */
  compactRevision(): Revision
  /**
   * Carries out the operations that `prepare` returns; no other transaction comes between what it reads and what it writes. An error that it throws rejects,
   * and nothing is written. `prepared` is what it returned.
   */
  transactWith<Prepared extends { readonly ops: readonly Op[] }>(
    prepare: (view: WrittenView) => Prepared,
  ): Promise<{ readonly prepared: Prepared } & Omit<TransactionResult, 'succeeded'>>
  watch(options: LocalWatchOptions, onBatch: (batch: StoreEventBatch) => void, signal: AbortSignal): Promise<void>
  /** @param id chosen by the caller; absent: a new one. The lease must not exist. */
  grantLease<Id extends LeaseId = number>(ttlSeconds: number, id?: Id): Promise<Id | number>
  readonly leaseCount: number
  /** Leases whose time has run out, since the store was opened. */
  readonly expiredLeaseCount: number
  leaseIds(): readonly LeaseId[]
  authEntries(): readonly AuthEntry[]
  /** Resolves when all the changes are durable: after a crash all of them are there or none. A larger value is refused with 'noSpace' beyond the quota. */
  writeAuth(changes: readonly AuthChange[]): Promise<void>
  /** Reads fail with 'closed' once the store is closed. */
  snapshot(): Promise<StoreSnapshot>
  /** Gives the space that nothing needs back to the file system. Writes wait meanwhile. */
  defragment(): Promise<void>
  /** Undefined when there is no such lease. */
  lease(id: LeaseId): { readonly ttlSeconds: number; readonly remainingSeconds: number } | undefined
  /** The keys that end with the lease, in no order. This is the store's own set, not a copy. */
  leaseKeys(id: LeaseId): Iterable<string>
}
