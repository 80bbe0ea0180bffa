/**
 * Snapshots of the embedded store (L2): one revision and the history before it, read in slices while writes continue. What compaction would remove stays until the
 * last snapshot is closed. Upstream: etcd server/storage/backend (Snapshot), server/storage/mvcc/key_index.go (compact, keep).
 */
import type { Revision, StoredChange, StoreSnapshot, WantedChanges } from '../store.ts'
import { storeError } from '../storeError.ts'
import type { Backend } from './backend.ts'
import type { MvccEngine } from './mvcc/engine.ts'
import { isTombstone, toKeyValue, type Version } from './mvcc/keyHistory.ts'

/** Changes of a store in memory that are handed out in one turn. */
const slice = 1000

export class StoreSnapshots {
  readonly #engine: MvccEngine
  readonly #backend: Backend
  #open = 0
  #isClosed = false
  #waiting: (() => void)[] = []

  constructor(engine: MvccEngine, backend: Backend) {
    this.#engine = engine
    this.#backend = backend
  }

  /** Resolves when no snapshot is open, or the store closes. */
  allClosed(): Promise<void> {
    if (this.#open === 0 || this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Snapshots that are open fail with 'closed'. */
  close(): void {
    this.#isClosed = true
    this.#release()
  }

  async take(beside: Pick<StoreSnapshot, 'leases' | 'auth'>): Promise<StoreSnapshot> {
    const [revision, compactRevision] = [this.#engine.durableRevision, this.#engine.compactRevision]
    this.#open++
    let isOpen = true
    const close = () => {
      if (!isOpen) return
      isOpen = false
      this.#open--
      if (this.#open === 0) this.#release()
    }
    try {
      await this.#backend.settle?.()
    } catch (error) {
      close()
      throw error
    }
    return {
      ...{ ...beside, revision, compactRevision, close },
      changes: (wanted = {}) => this.#changes(wanted, revision, compactRevision),
      isLiveAt: (change, at) => change.version > 0 && isSame(this.#engine.newestUpTo(change.key, at), change),
    }
  }

  #release(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }

  async *#changes({ after = 0, to, includes = () => true }: WantedChanges, newest: Revision, compacted: Revision): AsyncGenerator<readonly StoredChange[]> {
    const [first, last] = [after + 1, Math.min(to ?? newest, newest)]
    for (const versions of this.#backend.read ? this.#read(first, last) : this.#inMemory(first, last)) {
      const kept = versions.filter((version) => includes(version.key) && this.#isKept(version, compacted))
      if (kept.length > 0) yield kept.map((version) => ({ ...toKeyValue(version, this.#engine.valueOf(version)), sub: version.sub }))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  *#read(from: Revision, last: Revision): Generator<readonly Version[]> {
    for (let first = from; first <= last; ) {
      if (this.#isClosed) throw storeError('closed')
      const versions = this.#backend.read?.(first, last) ?? []
      const newest = versions.at(-1)
      if (!newest) return
      first = newest.modRevision + 1
      yield versions
    }
  }

  *#inMemory(first: Revision, last: Revision): Generator<readonly Version[]> {
    const all = this.#engine.changes('', '\0', first, last)
    for (let at = 0; at < all.length; at += slice) {
      if (this.#isClosed) throw storeError('closed')
      yield all.slice(at, at + slice)
    }
  }

  /** etcd keeps the newest version at the compaction, and a deletion only when it is the compaction's own revision. The rest may not be removed yet. */
  #isKept(version: Version, compacted: Revision): boolean {
    if (version.modRevision > compacted) return true
    return isSame(this.#engine.newestUpTo(version.key, compacted), version) && (!isTombstone(version) || version.modRevision === compacted)
  }
}

function isSame(version: Version | undefined, { modRevision, sub }: { readonly modRevision: Revision; readonly sub: number }): boolean {
  return version?.modRevision === modRevision && version.sub === sub
}
