/**
 * The multi-version core (L2, pure): every key's history, and transactions over it. Upstream: etcd's server/storage/mvcc.
 * Two views of one data: *written* (the newest end of each history), which transactions see, and *durable*, which readers see.
 * A transaction is written at once and becomes durable by commit(); rollback() takes back everything not durable.
 */
import { append } from '#base/extremes'
import { inOwnMemory } from '#base/ownMemory'
import { SortedMap } from '#base/sortedMap'
import type { Compare, KeyValue, LeaseId, Op, OpResult, RangeOptions, RangeResult, Revision } from '../../store.ts'
import { storeError } from '../../storeError.ts'
import {
  compactHistory,
  firstFrom,
  isTombstone,
  type KeyHistory,
  newestOf,
  newestUpTo,
  noBytes,
  toKeyValue,
  type Version,
  versionAt,
  versionBefore,
} from './keyHistory.ts'

export interface Written {
  readonly responses: readonly OpResult[]
  readonly revision: Revision
  /** What the operations changed; empty when they only read. */
  readonly versions: readonly Version[]
}

/** etcd's way to say "no upper end". */
export function upperEnd(to: string): string | undefined {
  return to === '\0' ? undefined : to
}

export class MvccEngine {
  readonly #histories = new SortedMap<KeyHistory>()
  /** The durable newest version of every existing key: reads at the newest revision touch nothing else. */
  readonly #newest = new SortedMap<Version>()
  /** Versions that replaced another one or are tombstones, in revision order: compaction looks at these keys and at no others. */
  #replacing: { revision: Revision; key: string }[] = []
  /** Number of leading entries that compaction has processed. */
  #replacingStart = 0
  /** Tombstones of the compaction's own revision, which the next compaction removes. */
  #ownTombstones: { revision: Revision; key: string }[] = []
  readonly #load: (version: Version) => Uint8Array | undefined
  #written: Revision = 1
  #durable: Revision = 1
  #compacted: Revision = 0
  #totalBytes = 0
  #liveBytes = 0

  constructor(load: (version: Version) => Uint8Array | undefined) {
    this.#load = load
  }

  get durableRevision(): Revision {
    return this.#durable
  }

  get compactRevision(): Revision {
    return this.#compacted
  }

  get totalBytes(): number {
    return this.#totalBytes
  }

  get liveBytes(): number {
    return this.#liveBytes
  }

  /** Restores what the backend remembers, in revision order; called before any other method. Keys are put in order once, at the end. */
  restore(versions: Iterable<Version>): void {
    const histories = new Map<string, KeyHistory>()
    for (const version of versions) {
      const history = histories.get(version.key)
      if (history) history.push(version)
      else histories.set(version.key, [version])
      this.#count(version, history !== undefined)
      this.#written = Math.max(this.#written, version.modRevision)
    }
    this.#durable = this.#written
    for (const key of [...histories.keys()].sort()) {
      const history = histories.get(key) as KeyHistory
      this.#histories.set(key, history)
      this.#makeNewest(newestOf(history) as Version)
    }
  }

  /** The newest durable versions of all existing keys that hang on a lease. */
  leased(): Version[] {
    return [...this.#newest.range()].filter(({ lease }) => lease !== 0)
  }

  /** Continues after this revision, although no version has it. Called before any write. */
  advanceTo(revision: Revision): void {
    this.#written = Math.max(this.#written, revision)
    this.#durable = this.#written
  }

  /** The newest version of a key at or before a revision, tombstones included. */
  newestUpTo(key: string, revision: Revision): Version | undefined {
    return newestUpTo(this.#histories.get(key) ?? [], revision)
  }

  /** The newest written version of a key, durable or not; undefined when it does not exist. */
  writtenVersion(key: string): Version | undefined {
    const version = newestOf(this.#histories.get(key))
    return version && !isTombstone(version) ? version : undefined
  }

  /** The written key as readers get it; undefined when it does not exist. */
  get(key: string): KeyValue | undefined {
    const version = this.writtenVersion(key)
    return version && toKeyValue(version, this.valueOf(version))
  }

  /** Whether a compare holds for what is written. Upstream: etcd server/etcdserver/txn/txn.go applyCompare. */
  holds(compare: Compare): boolean {
    const { key, to } = compare
    if (to === undefined) return this.#versionHolds(this.writtenVersion(key), compare)
    let isEmpty = true
    let holds = true
    this.#histories.scan(key, upperEnd(to), (_key, history) => {
      const version = newestOf(history)
      if (!version || isTombstone(version)) return true
      isEmpty = false
      holds = this.#versionHolds(version, compare)
      return holds
    })
    return isEmpty ? this.#versionHolds(undefined, compare) : holds
  }

  /** Bytes of the written keys and values that a range finds. */
  bytesIn(from: string, to: string | undefined, { revision, limit = 0, countOnly, keysOnly }: RangeOptions = {}): number {
    if (countOnly) return 0
    const at = revision || Number.POSITIVE_INFINITY
    let bytes = 0
    let left = limit || Number.POSITIVE_INFINITY
    const add = (history: KeyHistory | undefined): boolean => {
      const version = history && versionAt(history, at)
      if (!version) return true
      bytes += keysOnly ? version.key.length : version.bytes
      return --left > 0
    }
    if (to === undefined) add(this.#histories.get(from))
    else this.#histories.scan(from, upperEnd(to), (_key, history) => add(history))
    return bytes
  }

  versionBefore(version: Version): Version | undefined {
    return versionBefore(this.#histories.get(version.key), version)
  }

  /** The value of a version. @throws StoreError 'compacted' when it was forgotten */
  valueOf(version: Version): Uint8Array {
    if (version.value) return version.value
    if (isTombstone(version)) return noBytes
    const value = this.#load(version)
    if (!value) throw storeError('compacted', { revision: this.#compacted })
    return value
  }

  /** Reads durable data. @throws StoreError 'compacted' or 'futureRevision'. */
  range(from: string, to: string | undefined, options: RangeOptions = {}): RangeResult {
    const revision = options.revision ?? 0
    if (revision > this.#durable) throw storeError('futureRevision')
    if (revision > 0 && revision < this.#compacted) throw storeError('compacted', { revision: this.#compacted })
    if (revision > 0 && revision < this.#durable) return this.#rangeOf(from, to, options, this.#durable, (history) => versionAt(history, revision))
    if (to === undefined) {
      const version = this.#newest.get(from)
      return this.#answer(version ? [version] : [], version ? 1 : 0, options, this.#durable)
    }
    const limit = options.limit || Number.POSITIVE_INFINITY
    const versions: Version[] = []
    if (!options.countOnly) {
      this.#newest.scan(from, upperEnd(to), (_key, version) => {
        versions.push(version)
        return versions.length < limit
      })
    }
    const countedAll = !options.countOnly && versions.length < limit
    return this.#answer(versions, countedAll ? versions.length : this.#newest.count(from, upperEnd(to)), options, this.#durable)
  }

  /** Carries out the operations of one transaction on what is written. `checkLease` throws for a lease that does not exist. */
  write(ops: readonly Op[], checkLease: (id: LeaseId) => void): Written {
    // All checks run before the first change, so that none has to be rolled back.
    for (const op of ops) {
      if (op.type === 'put' && op.lease) checkLease(op.lease)
      if (op.type === 'range' && op.options?.revision) this.#checkReadable(op.options.revision)
    }
    const revision = this.#written + 1
    const versions: Version[] = []
    const responses = ops.map((op) => this.#perform(op, revision, versions))
    if (versions.length > 0) this.#written = revision
    return { responses, revision: this.#written, versions }
  }

  /** Makes the changes of one revision visible to readers. Called in revision order. */
  commit(versions: readonly Version[]): void {
    for (const version of versions) {
      this.#makeNewest(version)
      this.#durable = version.modRevision
    }
  }

  /** Rolls back a change that did not become durable; called for all of them, newest first. */
  rollback(version: Version): void {
    const history = this.#histories.get(version.key)
    history?.pop()
    if (history?.length === 0) this.#histories.delete(version.key)
    if (this.#replacing[this.#replacing.length - 1]?.key === version.key && this.#replacing.at(-1)?.revision === version.modRevision) this.#replacing.pop()
    this.#totalBytes -= version.bytes
    this.#written = this.#durable
  }

  /** From now on nothing before `revision` can be read. @throws StoreError 'compacted' or 'futureRevision'. */
  startCompaction(revision: Revision): void {
    if (revision <= this.#compacted) throw storeError('compacted', { revision: this.#compacted })
    if (revision > this.#durable) throw storeError('futureRevision')
    this.#compacted = revision
    if (this.#ownTombstones.length === 0) return
    this.#replacing = [...this.#ownTombstones, ...this.#replacing.slice(this.#replacingStart)]
    this.#replacingStart = 0
    this.#ownTombstones = []
  }

  /** Forgets the garbage of at most `limit` replacements and returns it, oldest first; undefined when nothing is left. A key's tombstone never leaves before its values. */
  compactSome(limit: number): Version[] | undefined {
    const start = this.#replacingStart
    let end = start
    while (end - start < limit && (this.#replacing[end]?.revision ?? Number.POSITIVE_INFINITY) <= this.#compacted) end++
    if (end === start) {
      this.#replacing = this.#replacing.slice(start)
      this.#replacingStart = 0
      return undefined
    }
    this.#replacingStart = end
    const last = this.#replacing[end - 1]?.revision ?? 0
    const forgotten: Version[] = []
    for (const entry of this.#replacing.slice(start, end)) {
      const history = this.#histories.get(entry.key)
      if (!history) continue
      append(forgotten, compactHistory(history, Math.min(last + 1, this.#compacted)))
      const oldest = history[0]
      if (!oldest) this.#histories.delete(entry.key)
      else if (isTombstone(oldest) && oldest.modRevision === entry.revision) this.#ownTombstones.push(entry)
    }
    for (const version of forgotten) this.#totalBytes -= version.bytes
    return forgotten.sort((a, b) => a.modRevision - b.modRevision || a.sub - b.sub)
  }

  /** All changes in [first, last] to keys of the range, in order: what a late watcher missed. */
  changes(from: string, to: string | undefined, first: Revision, last: Revision): Version[] {
    const found: Version[] = []
    const collect = (history: KeyHistory) => {
      for (let i = firstFrom(history, first); i < history.length; i++) {
        const version = history[i] as Version
        if (version.modRevision > last) return
        found.push(version)
      }
    }
    if (to === undefined) collect(this.#histories.get(from) ?? [])
    else {
      this.#histories.scan(from, upperEnd(to), (_key, history) => {
        collect(history)
        return true
      })
    }
    return found.sort((a, b) => a.modRevision - b.modRevision || a.sub - b.sub)
  }

  #checkReadable(revision: Revision): void {
    if (revision > this.#written) throw storeError('futureRevision')
    if (revision < this.#compacted) throw storeError('compacted', { revision: this.#compacted })
  }

  #versionHolds(version: Version | undefined, { target, op, value }: Compare): boolean {
    if (target === 'value') {
      // As etcd: comparing the value of a key that does not exist is always false.
      return version !== undefined && decide(Buffer.compare(this.valueOf(version), value as Uint8Array), op)
    }
    const wanted = value as number | bigint
    // Numbers and bigints compare by value; a difference of both does not exist.
    const actual = version ? version[fieldOf[target]] : 0
    return decide(actual > wanted ? 1 : actual < wanted ? -1 : 0, op)
  }

  #perform(op: Op, revision: Revision, versions: Version[]): OpResult {
    if (op.type === 'put') {
      const before = this.writtenVersion(op.key)
      const version: Version = {
        key: op.key,
        modRevision: revision,
        sub: versions.length,
        createRevision: before?.createRevision ?? revision,
        version: (before?.version ?? 0) + 1,
        lease: op.lease ?? 0,
        bytes: op.key.length + op.value.length,
        value: inOwnMemory(op.value),
      }
      this.#append(version)
      versions.push(version)
      return { type: 'put' }
    }
    if (op.type === 'delete') {
      const doomed: string[] = []
      if (op.to === undefined) {
        if (this.writtenVersion(op.from)) doomed.push(op.from)
      } else {
        this.#histories.scan(op.from, upperEnd(op.to), (key, history) => {
          if (!isTombstone(newestOf(history) as Version)) doomed.push(key)
          return true
        })
      }
      for (const key of doomed) {
        const version = { key, modRevision: revision, sub: versions.length, createRevision: 0, version: 0, lease: 0, bytes: key.length, value: undefined }
        this.#append(version)
        versions.push(version)
      }
      return { type: 'delete', deleted: doomed.length }
    }
    const at = op.options?.revision || Number.POSITIVE_INFINITY
    const current = versions.length > 0 ? revision : this.#written
    return { type: 'range', result: this.#rangeOf(op.from, op.to, op.options ?? {}, current, (history) => versionAt(history, at)) }
  }

  #rangeOf(from: string, to: string | undefined, options: RangeOptions, revision: Revision, pick: (history: KeyHistory) => Version | undefined): RangeResult {
    const versions: Version[] = []
    let count = 0
    const limit = options.countOnly ? 0 : options.limit || Number.POSITIVE_INFINITY
    const visit = (history: KeyHistory | undefined) => {
      const version = history && pick(history)
      if (version && count++ < limit) versions.push(version)
    }
    if (to === undefined) visit(this.#histories.get(from))
    else {
      this.#histories.scan(from, upperEnd(to), (_key, history) => {
        visit(history)
        return true
      })
    }
    return this.#answer(versions, count, options, revision)
  }

  #answer(versions: readonly Version[], count: number, options: RangeOptions, revision: Revision): RangeResult {
    const kvs = options.countOnly ? [] : versions.map((version) => toKeyValue(version, options.keysOnly ? noBytes : this.valueOf(version)))
    return { kvs, count, more: !options.countOnly && count > kvs.length, revision }
  }

  #append(version: Version): void {
    const history = this.#histories.get(version.key)
    if (history) history.push(version)
    else this.#histories.set(version.key, [version])
    this.#count(version, history !== undefined)
  }

  #count(version: Version, replaces: boolean): void {
    // A backend may return a tombstone alone when its put is already forgotten; it is garbage too.
    if (replaces || isTombstone(version)) this.#replacing.push({ revision: version.modRevision, key: version.key })
    this.#totalBytes += version.bytes
  }

  #makeNewest(version: Version): void {
    this.#liveBytes -= this.#newest.get(version.key)?.bytes ?? 0
    if (isTombstone(version)) {
      this.#newest.delete(version.key)
    } else {
      this.#newest.set(version.key, version)
      this.#liveBytes += version.bytes
    }
  }
}

const fieldOf = { version: 'version', create: 'createRevision', mod: 'modRevision', lease: 'lease' } as const

function decide(difference: number, op: Compare['op']): boolean {
  return op === '=' ? difference === 0 : op === '!=' ? difference !== 0 : op === '<' ? difference < 0 : difference > 0
}
