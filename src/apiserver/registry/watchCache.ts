/**
 * The current state and recent history of one stored resource (L3). It is fed by the cacher, in revision order; lists, watches, admission
 * plugins and components in the same process all read it by reference.
 * Upstream: apiserver/pkg/storage/cacher watchCache.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { StatusError, tooManyRequests } from '#api/machinery/status'
import { SortedMap } from '#base/sortedMap'
import type { KeyValue, StoreEvent } from '#store/store'
import { CacheEntry } from '../core/watch/cacheEntry.ts'
import { UnreadableValue } from '../core/watch/unreadableValue.ts'
import { UnreadBudget } from '../core/watch/unreadBudget.ts'
import { CacheChange, WatchedEvent } from '../core/watch/watchEvent.ts'
import { type WatchItem, WatchSession } from '../core/watch/watchSession.ts'
import { type ChangeListener, ChangeListeners, type ListenerFailed } from './changeListeners.ts'
import { ChangeRing } from './changeRing.ts'
import { HistoryBudget } from './historyBudget.ts'
import { RingBudget } from './ringBudget.ts'
import { canTouch, keyRange, matches, type Selection } from './selection.ts'
import { StoredValues } from './storedValues.ts'
import { type FieldIndex, WatchGroups } from './watchGroups.ts'

const sessionLimit = 16_384

/** An event whose value has been read, where that takes more than parsing it. */
export interface CacheEvent extends StoreEvent {
  /** The writer's object, when the event is of a write by this server. */
  readonly parsed?: KubeObject | undefined
  readonly unreadable?: UnreadableValue | undefined
}

/** A stored value that could not be read as an object. */
export interface UnreadableEntry {
  readonly kv: KeyValue
  readonly value: UnreadableValue
}

/** A write that was announced by its writer. */
interface Pending {
  readonly value: Uint8Array
  readonly object: KubeObject
  /** The object's plain bytes; `value` itself without encryption. */
  readonly plain: Uint8Array
}

export interface WatchStart {
  readonly selection: Selection
  /** Resume after this revision; absent: start with the current state as ADDED events. */
  readonly afterRevision?: number | undefined
  readonly bookmarks: boolean
  /** Close the initial events with the annotated bookmark. */
  readonly markInitialEvents: boolean
  /** Runs before items are delivered, for views with a conversion webhook. */
  readonly prepare?: ((items: readonly WatchItem[]) => Promise<void> | undefined) | undefined
}

/** Bounds of memory in addition to the current state, shared by the caches of a server. */
export interface CacheBudgets {
  readonly ring: RingBudget
  /** Of large objects. */
  readonly history: HistoryBudget
  /** Of large objects. */
  readonly unread: UnreadBudget
}

export function cacheBudgets(): CacheBudgets {
  return { ring: new RingBudget(), history: new HistoryBudget(), unread: new UnreadBudget() }
}

export class WatchCache {
  readonly prefix: string
  #entries = new SortedMap<CacheEntry>()
  readonly #changes: ChangeRing
  /** Events up to this revision are contained in the initial load. */
  #loadedAt = 0
  /** The revision of the newest change of this resource. */
  #changedAt = 0
  readonly #groups: WatchGroups
  readonly #listeners: ChangeListeners
  /** By key. Several where writers of one object compete: the store accepts one. */
  readonly #pending = new Map<string, readonly Pending[]>()
  #unreadable = new SortedMap<UnreadableEntry>()
  readonly values: StoredValues
  readonly #budgets: CacheBudgets

  /**
   * @param values absent: values are stored as plain text
   * @param budgets shared by the caches of a server
   */
  constructor(
    prefix: string,
    indexes: readonly FieldIndex[],
    values = new StoredValues('', undefined),
    budgets = cacheBudgets(),
    failed: ListenerFailed = raise,
  ) {
    this.#listeners = new ChangeListeners(failed)
    this.prefix = prefix
    this.values = values
    this.#budgets = budgets
    this.#changes = new ChangeRing(budgets.ring)
    this.#groups = new WatchGroups(indexes)
  }

  /** @throws StatusError InternalError when the object exists but cannot be read */
  get(key: string): CacheEntry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined && this.#unreadable.size > 0) this.#refuseUnreadable(key)
    return entry
  }

  #refuseUnreadable(key: string): void {
    const found = this.#unreadable.get(key)
    if (found) throw found.value.failure()
  }

  /** The entry of this key, if it cannot be read. */
  unreadableAt(key: string): UnreadableEntry | undefined {
    return this.#unreadable.get(key)
  }

  /** Entries that cannot be read. */
  get unreadable(): readonly UnreadableEntry[] {
    return [...this.#unreadable.range()]
  }

  /** @throws StatusError InternalError that names the first object of the selection which cannot be read */
  requireReadable(selection: Selection): void {
    const first = this.#unreadable.size > 0 ? this.#firstUnreadable(selection) : undefined
    if (first) throw first.value.failureOf(first.kv.key)
  }

  #firstUnreadable(selection: Selection): UnreadableEntry | undefined {
    const { from, to } = keyRange(selection)
    for (const entry of this.#unreadable.range(from, to)) return entry
    return undefined
  }

  get size(): number {
    return this.#entries.size
  }

  /** The revision of this resource's newest change: the state has been the same since. */
  get changedAt(): number {
    return this.#changedAt
  }

  /** Entries of the selection in key order, beginning at the key `start`. */
  *select(selection: Selection, start = ''): Generator<CacheEntry> {
    const { from, to } = keyRange(selection)
    const { matchesObject } = selection
    for (const entry of this.#entries.range(start > from ? start : from, to)) if (!matchesObject || matchesObject(entry)) yield entry
  }

  /** The objects of a namespace, or all where it is empty, in key order. Called at each admission, where the result is mostly empty. */
  objects(namespace: string): Frozen<KubeObject>[] {
    const found: Frozen<KubeObject>[] = []
    if (this.#entries.size === 0) return found
    const { from, to } = keyRange({ namespace })
    this.#entries.scan(from, to, (_key, entry) => {
      found.push(entry.object)
      return true
    })
    return found
  }

  /** How many watches got the newest change; undefined when another change is the newest. */
  watchersOf(revision: number): number | undefined {
    return this.#groups.newest.revision === revision ? this.#groups.newest.watchers : undefined
  }

  count(selection: Selection, start = ''): number {
    const { from, to } = keyRange(selection)
    return this.#entries.count(start > from ? start : from, to)
  }

  /**
   * Loads all objects at `revision`. The changes since the load before are not known one by one, so that open watches end and their clients list again;
   * listeners, which follow states, get the difference. Upstream: Cacher.terminateAllWatchers.
   * @returns what the caller hands to the listeners: a large object is parsed for them
   */
  load(entries: Iterable<CacheEntry>, revision: number, unreadable: readonly UnreadableEntry[], nowMs: number): readonly CacheChange[] {
    const before = this.#entries
    const isFirst = this.#loadedAt === 0
    this.#entries = new SortedMap()
    this.#unreadable = new SortedMap()
    this.#loadedAt = revision
    for (const entry of unreadable) this.#unreadable.set(this.#keyOf(entry.kv), entry)
    for (const read of entries) {
      const known = before.get(read.key)
      this.#hold(known?.resourceVersion === read.resourceVersion ? known : read)
    }
    for (const old of before.range()) if (this.#entries.get(old.key) !== old) this.#budgets.unread.replaced(old)
    this.#startHistory(revision)
    if (!isFirst) this.closeWatches()
    return this.#listeners.isEmpty ? [] : changesBetween(before, this.#entries, revision, nowMs)
  }

  /**
   * A writer announces what it is about to store, so that the event need not be parsed again. The object belongs to the cache once
   * the event arrives; `done` withdraws the announcement.
   * @param plain the bytes before encryption; absent: `value` is not encrypted
   */
  expect(key: string, value: Uint8Array, object: KubeObject, plain = value): { done(): void } {
    const pending = { value, object, plain }
    this.#pending.set(key, [...(this.#pending.get(key) ?? []), pending])
    return { done: () => this.#withdraw(key, pending) }
  }

  #withdraw(key: string, pending: Pending): void {
    const others = this.#pending.get(key)?.filter((one) => one !== pending) ?? []
    if (others.length > 0) this.#pending.set(key, others)
    else this.#pending.delete(key)
  }

  /** Decrypts the event's value; returns a promise only if a key must be fetched first. */
  read(event: StoreEvent): CacheEvent | Promise<CacheEvent> {
    if (event.type === 'delete') return event
    const { kv } = event
    if (this.values.transformed) {
      const pending = this.#claim(this.#keyOf(kv), kv.value)
      if (pending) return { ...event, kv: { ...kv, value: pending.plain }, parsed: pending.object }
    }
    const value = this.values.read(kv.key, kv.value)
    if (value === kv.value) return event
    return value instanceof Promise ? value.then((one) => readEvent(event, one)) : readEvent(event, value)
  }

  /** Applies one event of the store. @returns its value if that cannot be read */
  apply(event: CacheEvent, revision: number, nowMs: number): UnreadableValue | undefined {
    // A cache that is added at run time may have been read ahead of the events.
    if (revision <= this.#loadedAt) return undefined
    const key = this.#keyOf(event.kv)
    const entry = event.type === 'put' ? (event.unreadable ?? this.#entryOf(key, event, revision)) : undefined
    if (entry instanceof UnreadableValue) {
      this.#hide(key, { kv: event.kv, value: entry }, revision)
      return entry
    }
    if (this.#unreadable.size > 0 && this.#unreadable.delete(key)) this.#changedAt = revision
    const change = entry ? this.#put(entry, revision, nowMs) : this.#delete(key, revision, nowMs)
    if (!change) return undefined
    this.#record(change, nowMs)
    this.callListeners(change)
    this.#countAsHistory(change)
    return undefined
  }

  #entryOf(key: string, event: CacheEvent, revision: number): CacheEntry | UnreadableValue {
    const { value, createRevision } = event.kv
    const parsed = event.parsed ?? this.#claim(key, value)?.object
    // Without an announcement, another process wrote it.
    return parsed ? CacheEntry.stored(key, value, revision, createRevision, parsed) : CacheEntry.read(key, value, revision, createRevision, 'all')
  }

  #record(change: CacheChange, nowMs: number): void {
    this.#changedAt = change.revision
    this.#changes.add(change, nowMs)
    this.#groups.dispatch(change)
  }

  /** For changes that `load` has returned; apply() calls them itself. */
  callListeners(change: CacheChange): void {
    if (this.#listeners.isEmpty) return
    const seen = { type: change.type, object: change.entry.object, old: change.previous?.object }
    this.#listeners.call(this.prefix + change.entry.key, seen)
  }

  /** Called last: the previous object is dropped from memory, and would be parsed again for a listener. */
  #countAsHistory(change: CacheChange): void {
    if (!change.isLarge) return
    const { previous, heldBytes } = change
    previous?.dropDecoded()
    const evict = () => {
      if (previous) this.#changes.evict(previous)
      change.evictPrevious()
      if (change.type === 'DELETED') change.evictEntry()
    }
    this.#budgets.history.add({ heldBytes, dropDecoded: () => change.dropDecoded(), evict })
  }

  onChange(listener: ChangeListener): () => void {
    return this.#listeners.add(listener)
  }

  /** Opens a watch. `revision` is the cacher's current one. Throws Expired when the wanted history is gone. */
  watch(start: WatchStart, revision: number): WatchSession {
    const { selection, afterRevision } = start
    // Upstream's answer while its cache cannot be filled: clients then list, and get the reason.
    if (this.#unreadable.size > 0 && this.#firstUnreadable(selection)) throw tooManyRequests('storage is (re)initializing', 1)
    if (afterRevision !== undefined && afterRevision < this.#changes.floor) throw tooOld(afterRevision, this.#changes.floor)
    const items: WatchItem[] = afterRevision === undefined ? this.#currentState(selection) : this.#history(selection, afterRevision)
    if (start.markInitialEvents) items.push({ type: 'BOOKMARK', revision, initialEventsEnd: true })
    const session = new WatchSession({
      afterRevision: Math.max(afterRevision ?? 0, revision),
      bookmarks: start.bookmarks,
      limit: sessionLimit,
      unread: this.#budgets.unread,
      prepare: start.prepare,
      onClose: () => this.#groups.remove(selection, session),
    })
    // Too many initial events may have cut it off.
    this.#groups.add(selection, session)
    session.preload(items)
    return session
  }

  bookmark(revision: number): void {
    for (const session of this.#groups.sessions()) if (session.bookmarks) session.push({ type: 'BOOKMARK', revision, initialEventsEnd: false })
  }

  /** Called when the served versions of this resource have changed. */
  forgetViews(): void {
    for (const entry of this.#entries.range()) entry.forgetViews()
  }

  closeWatches(error?: StatusError): void {
    for (const session of [...this.#groups.sessions()]) session.close(error)
  }

  /** Called when the resource is not served any more: ends the watches and frees the history. */
  close(): void {
    this.closeWatches()
    this.#changes.startAfter(this.#changedAt)
  }

  /**
   * An object that can be read by now appears as it was written; watches that would have missed it have not been open.
   */
  reveal({ kv }: UnreadableEntry, value: Uint8Array, revision: number): void {
    const key = this.#keyOf(kv)
    if (this.#unreadable.get(key)?.kv !== kv) return
    const entry = CacheEntry.read(key, value, kv.modRevision, kv.createRevision)
    if (entry instanceof UnreadableValue) {
      this.#unreadable.set(key, { kv, value: entry })
      return
    }
    this.#unreadable.delete(key)
    this.#hold(entry)
    this.#startHistory(revision)
    this.#listeners.call(this.prefix + entry.key, { type: 'ADDED', object: entry.object })
  }

  /** Ends the watches, because clients must learn that the object's state is unknown. */
  #hide(key: string, entry: UnreadableEntry, revision: number): void {
    const previous = this.#entries.delete(key)
    if (previous) this.#budgets.unread.replaced(previous)
    this.#unreadable.set(key, entry)
    this.#startHistory(revision)
    this.closeWatches()
  }

  #startHistory(revision: number): void {
    this.#changes.startAfter(revision)
    this.#changedAt = revision
  }

  #keyOf(kv: KeyValue): string {
    return kv.key.slice(this.prefix.length)
  }

  /** Makes the entry the current version of its object. @returns the previous version */
  #hold(entry: CacheEntry): CacheEntry | undefined {
    entry.isCurrent = true
    const previous = this.#entries.set(entry.key, entry)
    if (previous) this.#budgets.unread.replaced(previous)
    return previous
  }

  #claim(key: string, value: Uint8Array): Pending | undefined {
    const pending = this.#pending.get(key)?.find((one) => sameBytes(one.value, value))
    if (pending) this.#withdraw(key, pending)
    return pending
  }

  #put(entry: CacheEntry, revision: number, nowMs: number): CacheChange {
    const previous = this.#hold(entry)
    return new CacheChange(previous ? 'MODIFIED' : 'ADDED', entry, previous, revision, nowMs)
  }

  #delete(key: string, revision: number, nowMs: number): CacheChange | undefined {
    const previous = this.#entries.delete(key)
    if (previous) this.#budgets.unread.replaced(previous)
    return previous && new CacheChange('DELETED', previous.at(revision), previous, revision, nowMs)
  }

  #currentState(selection: Selection): WatchItem[] {
    const items: WatchItem[] = []
    for (const entry of this.select(selection)) items.push(new WatchedEvent('ADDED', entry, entry.resourceVersion))
    return items
  }

  #history(selection: Selection, afterRevision: number): WatchItem[] {
    const items: WatchItem[] = []
    const matchesByKey = selection.matchesObject === undefined
    for (const change of this.#changes.after(afterRevision)) {
      const { evictedKey } = change
      if (evictedKey !== undefined && !canTouch(selection, evictedKey)) continue
      if (!change.isKnownTo(matchesByKey)) throw tooOld(afterRevision, change.revision)
      const event = change.seenBy((entry) => matches(selection, entry))
      if (event) items.push(event)
    }
    return items
  }
}

function tooOld(wanted: number, floor: number): StatusError {
  return new StatusError('Expired', `too old resource version: ${wanted} (${floor})`)
}

/** The changes between two readings, in order of revision. A deletion gets the revision of the second reading, since its own is unknown. */
function changesBetween(before: SortedMap<CacheEntry>, after: SortedMap<CacheEntry>, revision: number, nowMs: number): CacheChange[] {
  const changes: CacheChange[] = []
  const deleted = (old: CacheEntry, at: number) => changes.push(new CacheChange('DELETED', old.at(at), old, at, nowMs))
  for (const entry of after.range()) {
    const old = before.get(entry.key)
    if (old?.resourceVersion === entry.resourceVersion) continue
    const isSameObject = old?.createRevision === entry.createRevision
    // Deleted and created again: the deletion came before the creation.
    if (old && !isSameObject) deleted(old, entry.createRevision - 1)
    changes.push(new CacheChange(isSameObject ? 'MODIFIED' : 'ADDED', entry, isSameObject ? old : undefined, entry.resourceVersion, nowMs))
  }
  for (const old of before.range()) if (!after.get(old.key)) deleted(old, revision)
  return changes.sort((a, b) => a.revision - b.revision)
}

function readEvent(event: StoreEvent, value: Uint8Array | UnreadableValue): CacheEvent {
  return value instanceof Uint8Array ? { ...event, kv: { ...event.kv, value } } : { ...event, unreadable: value }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a === b || Buffer.compare(a, b) === 0
}

function raise(_key: string, error: unknown): never {
  throw error
}
