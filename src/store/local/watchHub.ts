/**
 * Watches (L2): one ordered log of recent durable changes, delivered once to the watchers of their keys, with no work per idle watcher.
 * A late watcher is caught up from the log or, if it starts before the log, from the histories, and only then joins the live ones:
 * no gap, no repeat. Upstream: etcd's synced and unsynced watcher groups (server/storage/mvcc/watchable_store.go).
 */
import type { LocalWatchOptions, Revision, StoreEvent, StoreEventBatch, StoreWatchOptions } from '../store.ts'
import { storeError } from '../storeError.ts'
import type { MvccEngine } from './mvcc/engine.ts'
import { upperEnd } from './mvcc/engine.ts'
import { isTombstone, noBytes, toKeyValue, type Version } from './mvcc/keyHistory.ts'
import { WatcherIndex } from './mvcc/watcherIndex.ts'

interface Watcher {
  readonly options: LocalWatchOptions
  readonly onBatch: (batch: StoreEventBatch) => void
  readonly fail: (error: unknown) => void
  /** Live batches before this revision are not for it: it asked to start in the future. */
  firstLive: Revision
}

interface Logged {
  readonly revision: Revision
  readonly versions: readonly Version[]
}

export interface WatchHubOptions {
  /** Drop values from memory when a change leaves the log, because the backend can load them again. */
  readonly forgetValues: boolean
  readonly maxLogBytes: number
}

/** Events handed over before the event loop gets a turn, while a watcher catches up. */
const catchUpSlice = 512

export class WatchHub {
  readonly #engine: MvccEngine
  readonly #options: WatchHubOptions
  readonly #watchers = new WatcherIndex<Watcher>()
  readonly #all = new Set<Watcher>()
  /** Live watchers that want to know of revisions without an event for them. */
  readonly #following = new Set<Watcher>()
  #log: Logged[] = []
  #logStart = 0
  #logBytes = 0
  #closed = false

  constructor(engine: MvccEngine, options: WatchHubOptions) {
    this.#engine = engine
    this.#options = options
  }

  /** Tells the watchers about one revision, which is durable and readable by now. */
  publish(revision: Revision, versions: readonly Version[]): void {
    this.#remember({ revision, versions })
    const wanted = new Map<Watcher, StoreEvent[]>()
    for (const version of versions) {
      const events = lazyEvents(this.#engine, version)
      this.#watchers.forKey(version.key, (watcher) => {
        if (revision < watcher.firstLive) return
        const list = wanted.get(watcher)
        const event = events(watcher.options.previous === true)
        if (list) list.push(event)
        else wanted.set(watcher, [event])
      })
    }
    for (const [watcher, events] of wanted) deliver(watcher, { revision, events })
    for (const watcher of this.#following) if (revision >= watcher.firstLive && !wanted.has(watcher)) watcher.options.onProgress?.(revision)
  }

  /** Resolves when the signal aborts; rejects with 'compacted', 'closed', or what onBatch threw. */
  async watch(options: LocalWatchOptions, onBatch: (batch: StoreEventBatch) => void, signal: AbortSignal): Promise<void> {
    if (this.#closed) throw storeError('closed')
    if (signal.aborted) return
    const { promise, resolve, reject } = withResolvers()
    const watcher: Watcher = { options, onBatch, fail: reject, firstLive: 0 }
    this.#all.add(watcher)
    const onAbort = () => resolve()
    signal.addEventListener('abort', onAbort, { once: true })
    let ended = false
    try {
      // The catch-up fails or the watch ends: either one stops the other.
      this.#catchUp(watcher, () => ended).catch(reject)
      await promise
    } finally {
      ended = true
      signal.removeEventListener('abort', onAbort)
      this.#leave(watcher)
    }
  }

  close(): void {
    this.#closed = true
    for (const watcher of this.#all) watcher.fail(storeError('closed'))
  }

  async #catchUp(watcher: Watcher, ended: () => boolean): Promise<void> {
    let delivered = 0
    let next = watcher.options.startRevision || this.#engine.durableRevision + 1
    while (next <= this.#engine.durableRevision) {
      if (next < this.#engine.compactRevision) throw storeError('compacted', { revision: this.#engine.compactRevision })
      const until = this.#engine.durableRevision
      const missed = this.#missed(watcher.options, next, until)
      for (let i = 0, sinceTurn = 0; i < missed.length; ) {
        const revision = (missed[i] as Version).modRevision
        const events: StoreEvent[] = []
        for (; missed[i]?.modRevision === revision; i++) events.push(eventOf(this.#engine, missed[i] as Version, watcher.options.previous === true))
        watcher.onBatch({ revision, events })
        delivered = revision
        sinceTurn += events.length
        if (sinceTurn >= catchUpSlice) {
          sinceTurn = 0
          await nextTurn()
        }
        if (ended()) return
      }
      next = until + 1
    }
    // No turn of the event loop lies between the last look and joining, so nothing slips through.
    watcher.firstLive = next
    if (ended()) return
    this.#join(watcher)
    if (delivered < next - 1) watcher.options.onProgress?.(next - 1)
    watcher.options.onLive?.()
  }

  #missed(options: StoreWatchOptions, first: Revision, last: Revision): readonly Version[] {
    const oldest = this.#log[this.#logStart]
    if (!oldest || oldest.revision > first) return this.#engine.changes(options.from, options.to, first, last)
    const end = options.to === undefined ? undefined : upperEnd(options.to)
    const inRange = (key: string) => (options.to === undefined ? key === options.from : key >= options.from && (end === undefined || key < end))
    const missed: Version[] = []
    for (let i = this.#log.length - 1; i >= this.#logStart && (this.#log[i] as Logged).revision >= first; i--) {
      const { versions } = this.#log[i] as Logged
      for (let j = versions.length - 1; j >= 0; j--) if (inRange((versions[j] as Version).key)) missed.push(versions[j] as Version)
    }
    return missed.reverse()
  }

  #remember(logged: Logged): void {
    this.#log.push(logged)
    for (const version of logged.versions) this.#logBytes += version.bytes
    while (this.#logBytes > this.#options.maxLogBytes && this.#logStart < this.#log.length - 1) {
      const { revision, versions } = this.#log[this.#logStart] as Logged
      // The place is taken away later, and must not keep the values until then.
      this.#log[this.#logStart++] = { revision, versions: [] }
      for (const version of versions) {
        this.#logBytes -= version.bytes
        if (this.#options.forgetValues) version.value = undefined
      }
    }
    if (this.#logStart > 1024 && this.#logStart * 2 > this.#log.length) {
      this.#log = this.#log.slice(this.#logStart)
      this.#logStart = 0
    }
  }

  #join(watcher: Watcher): void {
    const { from, to, onProgress } = watcher.options
    if (onProgress) this.#following.add(watcher)
    if (to === undefined) this.#watchers.addKey(from, watcher)
    else this.#watchers.addRange(from, upperEnd(to), watcher)
  }

  #leave(watcher: Watcher): void {
    this.#all.delete(watcher)
    this.#following.delete(watcher)
    this.#watchers.removeKey(watcher.options.from, watcher)
    this.#watchers.removeRange(watcher)
  }
}

function deliver(watcher: Watcher, batch: StoreEventBatch): void {
  try {
    watcher.onBatch(batch)
  } catch (error) {
    watcher.fail(error)
  }
}

/** Makes the event of a change at most twice for all watchers: with and without the previous version. */
function lazyEvents(engine: MvccEngine, version: Version): (previous: boolean) => StoreEvent {
  const made: { plain?: StoreEvent; full?: StoreEvent } = {}
  return (previous) => {
    const kind = previous ? 'full' : 'plain'
    made[kind] ??= eventOf(engine, version, previous)
    return made[kind]
  }
}

function eventOf(engine: MvccEngine, version: Version, previous: boolean): StoreEvent {
  const kv = toKeyValue(version, isTombstone(version) ? noBytes : engine.valueOf(version))
  const type = isTombstone(version) ? 'delete' : 'put'
  const before = previous ? engine.versionBefore(version) : undefined
  return before ? { type, kv, previous: toKeyValue(before, engine.valueOf(before)) } : { type, kv }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void } {
  let resolve: () => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<void>((res, rej) => {
    resolve = res
    reject = rej
  })
  return { promise, resolve, reject }
}
