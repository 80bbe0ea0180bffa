/**
 * A change of one object in the watch cache (L3), and the events that watchers of a selection get for it. Each form is encoded once, for all
 * watchers with that encoding.
 */
import { inOwnMemory, ownConcat } from '#base/ownMemory'
import { isLargeObject } from '../fairLoop.ts'
import type { CachedObject } from '../request.ts'
import type { CacheEntry, VersionView } from './cacheEntry.ts'

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** A form of events: a version in JSON, a table, partial metadata. `key` names it uniquely. */
export interface EventForm {
  readonly key: string
  readonly view?: VersionView | undefined
  /** The object field of the event; absent: the object's own bytes. */
  encode?(object: CachedObject): Uint8Array
  /** The same as a value, for watchers in this process; absent: the object itself. */
  value?(object: CachedObject): unknown
}

/** An event as delivered; shared by all watchers that see the same thing. */
export class WatchedEvent {
  readonly type: ChangeType
  readonly entry: CacheEntry
  readonly revision: number
  /** Undefined: encodings are not cached. */
  #encoded: { key: string; bytes: Buffer }[] | undefined = []

  constructor(type: ChangeType, entry: CacheEntry, revision: number) {
    this.type = type
    this.entry = entry
    this.revision = revision
  }

  /** `{"type":…,"object":…}` and a newline. */
  encoded(form: EventForm): Buffer {
    return this.encodedAs(form.key, () => {
      const object = this.entry.view(form.view)
      return ownConcat([head[this.type], form.encode ? form.encode(object) : object.bytes, tail])
    })
  }

  /** The event in any other encoding; made for the first watcher that uses it. */
  encodedAs(key: string, encode: () => Buffer): Buffer {
    if (!this.#encoded) return encode()
    for (const known of this.#encoded) if (known.key === key) return known.bytes
    const bytes = inOwnMemory(encode())
    this.#encoded.push({ key, bytes })
    return bytes
  }

  /** From now on each watcher that still has to send it encodes it separately. */
  dropEncoded(): void {
    this.#encoded = undefined
  }
}

const head: Readonly<Record<ChangeType, Buffer>> = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
}
const tail = Buffer.from('}\n')

/** One change of the store, in the ring. `entry` is the new state, or the last one at the deletion's revision. */
export class CacheChange {
  readonly type: ChangeType
  readonly revision: number
  readonly atMs: number
  #entry: CacheEntry | undefined
  #previous: CacheEntry | undefined
  #added: WatchedEvent | undefined
  #modified: WatchedEvent | undefined
  #deleted: WatchedEvent | undefined
  #evictedKey: string | undefined

  constructor(type: ChangeType, entry: CacheEntry, previous: CacheEntry | undefined, revision: number, atMs: number) {
    this.type = type
    this.#entry = entry
    this.#previous = previous
    this.revision = revision
    this.atMs = atMs
  }

  get entry(): CacheEntry {
    return this.#entry as CacheEntry
  }

  get previous(): CacheEntry | undefined {
    return this.#previous
  }

  /** Drops the objects when the ring has passed the change, even if its slot is reused later. */
  forget(): void {
    this.#entry = undefined
    this.#previous = undefined
    this.#added = undefined
    this.#modified = undefined
    this.#deleted = undefined
  }

  /** Length of the longer of its stored values. */
  get bytes(): number {
    return Math.max(this.entry.storedBytes, this.previous?.storedBytes ?? 0)
  }

  /** Whether HistoryBudget counts the versions that it holds, instead of RingBudget. */
  get isLarge(): boolean {
    return isLargeObject(this.bytes)
  }

  /** Bytes that only this change keeps in memory, not the cache. */
  get heldBytes(): number {
    const previous = this.previous?.storedBytes ?? 0
    return this.type === 'DELETED' ? previous + this.entry.storedBytes : previous
  }

  /** Keeps what history needs: watchers hold the events that they have not sent yet. */
  dropDecoded(): void {
    this.#previous?.dropDecoded()
    if (this.type === 'DELETED') this.#entry?.dropDecoded()
    this.#dropEvents()
  }

  /** The object's key, once a version of it was evicted: then only some selections can still be evaluated. */
  get evictedKey(): string | undefined {
    return this.#evictedKey
  }

  holds(entry: CacheEntry): boolean {
    return this.#entry === entry
  }

  evictEntry(): void {
    this.#evictedKey ??= this.#entry?.key
    this.#entry = undefined
    this.#dropEvents()
  }

  evictPrevious(): void {
    this.#evictedKey ??= this.#previous?.key
    this.#previous = undefined
    this.#dropEvents()
  }

  /** Whether `seenBy` can compute the event. @param matchesByKey the watcher's selection uses only the object's key */
  isKnownTo(matchesByKey: boolean): boolean {
    return this.#evictedKey === undefined || (matchesByKey && this.#entry !== undefined)
  }

  #dropEvents(): void {
    for (const event of [this.#added, this.#modified, this.#deleted]) event?.dropEncoded()
    this.#added = undefined
    this.#modified = undefined
    this.#deleted = undefined
  }

  /**
   * The event for a watcher whose selection held the object before and holds it now: an object that enters a selection is ADDED, one
   * that leaves it is DELETED with its last matching content. Undefined when the watcher sees nothing. An evicted previous version
   * counts as matching when the entry matches, which is right for selections by key alone (see `isKnownTo`).
   */
  seenBy(matches: (entry: CacheEntry) => boolean): WatchedEvent | undefined {
    const now = this.type !== 'DELETED' && matches(this.entry)
    const before = this.type !== 'ADDED' && matches(this.type === 'DELETED' ? this.entry : (this.previous ?? this.entry))
    if (now && before) {
      this.#modified ??= new WatchedEvent('MODIFIED', this.entry, this.revision)
      return this.#modified
    }
    if (now) {
      this.#added ??= new WatchedEvent('ADDED', this.entry, this.revision)
      return this.#added
    }
    if (before) {
      const last = this.type === 'DELETED' ? this.entry : this.previous!.at(this.revision)
      this.#deleted ??= new WatchedEvent('DELETED', last, this.revision)
      return this.#deleted
    }
    return undefined
  }
}
