/**
 * One open watch (L3): a bounded queue between the cache, which never waits, and a consumer, which may be slow. A consumer that falls
 * too far behind is cut off; the others do not notice.
 */
import type { StatusError } from '#api/machinery/status'
import { EncodedBatches } from './encodedBatches.ts'
import { UnreadBudget, type UnreadHolder } from './unreadBudget.ts'
import type { WatchedEvent } from './watchEvent.ts'

export interface Bookmark {
  readonly type: 'BOOKMARK'
  readonly revision: number
  /** Ends the initial events of a streaming list. */
  readonly initialEventsEnd: boolean
}

export type WatchItem = WatchedEvent | Bookmark

const nothing: readonly WatchItem[] = []

export class WatchSession implements UnreadHolder {
  /** Shared with watches that get the same events. */
  batches = new EncodedBatches<WatchItem>()
  /** Events at or below this revision are skipped. */
  readonly afterRevision: number
  readonly bookmarks: boolean
  #items: WatchItem[] = []
  /** The items of the last `take`: the consumer holds their bytes until it takes more. */
  #handedOut: readonly WatchItem[] = nothing
  /** So many items from the front are initial events. */
  #preloaded = 0
  #wake: (() => void) | undefined
  #ended = false
  #error: StatusError | undefined
  readonly #limit: number
  readonly #unread: UnreadBudget
  readonly #prepare: ((items: readonly WatchItem[]) => Promise<void> | undefined) | undefined
  readonly #onClose: (() => void)[]

  constructor(options: {
    afterRevision: number
    bookmarks: boolean
    limit: number
    /** Absent: the session has its own budget. */
    unread?: UnreadBudget | undefined
    prepare?: ((items: readonly WatchItem[]) => Promise<void> | undefined) | undefined
    onClose: () => void
  }) {
    this.afterRevision = options.afterRevision
    this.bookmarks = options.bookmarks
    this.#limit = options.limit
    this.#unread = options.unread ?? new UnreadBudget()
    this.#prepare = options.prepare
    this.#onClose = [options.onClose]
  }

  /** A watch that ends at once with an error event. */
  static failed(error: StatusError): WatchSession {
    const session = new WatchSession({ afterRevision: 0, bookmarks: false, limit: 0, onClose: () => undefined })
    session.close(error)
    return session
  }

  /** Queues the initial events, any number of them, before live events. The watch may be cut off meanwhile. */
  preload(items: readonly WatchItem[]): void {
    this.#items = this.#items.concat(items)
    this.#preloaded = this.#items.length
    this.#hold(items)
    this.#signal()
  }

  /** Called by the cache; never waits. */
  push(item: WatchItem): void {
    if (this.#ended) return
    if (this.#items.length >= this.#limit) {
      this.cutOff()
      return
    }
    this.#items.push(item)
    if (item.type !== 'BOOKMARK') this.#unread.hold(item.entry, this)
    this.#signal()
  }

  /** Ends the watch of a client that is too far behind to catch up. It resumes from what it has read. */
  cutOff(): void {
    this.#release(this.#items)
    this.#items = []
    this.#preloaded = 0
    this.close()
  }

  /** Whether initial events are still queued. */
  get isStarting(): boolean {
    return this.#preloaded > 0
  }

  /** Takes all ready items, or waits for some; undefined after the end. Throws the error that ended the watch. One caller at a time. */
  async next(): Promise<readonly WatchItem[] | undefined> {
    for (;;) {
      const items = this.take()
      if (!items || items.length > 0) {
        const pending = items && this.prepared(items)
        if (pending) await pending
        return items
      }
      await this.ready()
    }
  }

  /**
   * Takes the ready items without waiting: empty when there are none yet, undefined after the end. Throws the error that ended the watch.
   * @param mostBytes of stored objects, unless the first one alone is longer; absent: all
   */
  take(mostBytes?: number): readonly WatchItem[] | undefined {
    if (this.#handedOut.length > 0) this.#release(this.#handedOut)
    const items = this.#items
    if (items.length > 0) {
      const count = mostBytes === undefined || items.length === 1 ? items.length : countWithin(items, mostBytes)
      const taken = count === items.length ? items : items.slice(0, count)
      this.#items = count === items.length ? [] : items.slice(count)
      // After the end, items do not count against the budget.
      this.#handedOut = this.#ended ? nothing : taken
      if (this.#preloaded > 0) this.#preloaded -= Math.min(this.#preloaded, taken.length)
      return taken
    }
    this.#handedOut = nothing
    if (this.#error) throw this.#error
    return this.#ended ? undefined : nothing
  }

  /** A promise to await before the items are encoded; undefined: none. */
  prepared(items: readonly WatchItem[]): Promise<void> | undefined {
    return this.#prepare?.(items)
  }

  /** Resolves when `take` has items, or the watch has ended. */
  ready(): Promise<void> {
    if (this.#items.length > 0 || this.#ended) return Promise.resolve()
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** Ends the watch; what is queued may still be read. An error is thrown by `next` once the queue is empty. */
  close(error?: StatusError): void {
    if (this.#ended) return
    this.#ended = true
    this.#release(this.#handedOut)
    this.#release(this.#items)
    this.#handedOut = nothing
    this.#error = error
    for (const fn of this.#onClose.splice(0)) fn()
    this.#signal()
  }

  /** Calls back when the watch ends, at once if it has. */
  whenClosed(fn: () => void): void {
    if (this.#ended) fn()
    else this.#onClose.push(fn)
  }

  get ended(): boolean {
    return this.#ended
  }

  #hold(items: readonly WatchItem[]): void {
    for (const item of items) {
      if (this.#ended) return
      if (item.type !== 'BOOKMARK') this.#unread.hold(item.entry, this)
    }
  }

  #release(items: readonly WatchItem[]): void {
    for (const item of items) if (item.type !== 'BOOKMARK') this.#unread.release(item.entry, this)
  }

  #signal(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

/** How many items from the front stay within so many bytes; at least one. */
function countWithin(items: readonly WatchItem[], mostBytes: number): number {
  let bytes = 0
  for (let at = 0; at < items.length; at++) {
    const item = items[at]
    if (item && item.type !== 'BOOKMARK') bytes += item.entry.storedBytes
    if (bytes > mostBytes) return Math.max(1, at)
  }
  return items.length
}
