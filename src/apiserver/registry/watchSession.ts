/**
 * One open watch (L3): a bounded queue between the cache, which never waits, and a consumer, which may be slow. A consumer that falls
 * too far behind is cut off; the others do not notice.
 */
import type { StatusError } from '#api/machinery/status'
import { EncodedBatches } from './encodedBatches.ts'
import type { WatchedEvent } from './watchEvent.ts'

export interface Bookmark {
  readonly type: 'BOOKMARK'
  readonly revision: number
  /** Ends the initial events of a streaming list. */
  readonly initialEventsEnd: boolean
}

export type WatchItem = WatchedEvent | Bookmark

const nothing: readonly WatchItem[] = []

export class WatchSession {
  /** Shared with the watches that see the same. */
  batches = new EncodedBatches<WatchItem>()
  /** Events at or below this revision were seen or are not wanted. */
  readonly afterRevision: number
  readonly bookmarks: boolean
  #items: WatchItem[] = []
  #wake: (() => void) | undefined
  #ended = false
  #error: StatusError | undefined
  readonly #limit: number
  readonly #prepare: ((items: readonly WatchItem[]) => Promise<void> | undefined) | undefined
  readonly #onClose: (() => void)[]

  constructor(options: {
    afterRevision: number
    bookmarks: boolean
    limit: number
    prepare?: ((items: readonly WatchItem[]) => Promise<void> | undefined) | undefined
    onClose: () => void
  }) {
    this.afterRevision = options.afterRevision
    this.bookmarks = options.bookmarks
    this.#limit = options.limit
    this.#prepare = options.prepare
    this.#onClose = [options.onClose]
  }

  /** A watch that is over before it began: it shows its error alone. */
  static failed(error: StatusError): WatchSession {
    const session = new WatchSession({ afterRevision: 0, bookmarks: false, limit: 0, onClose: () => undefined })
    session.close(error)
    return session
  }

  /** What the watch starts with, before any live event; not bounded, because the cache holds it anyway. */
  preload(items: readonly WatchItem[]): void {
    this.#items = this.#items.concat(items)
    this.#signal()
  }

  /** Called by the cache; never waits. */
  push(item: WatchItem): void {
    if (this.#ended) return
    if (this.#items.length >= this.#limit) {
      // Whoever did not read that much will not read the rest either; the client resumes from where it is.
      this.#items = []
      this.close()
      return
    }
    this.#items.push(item)
    this.#signal()
  }

  /** All that is ready, or waits for more; undefined after the end. Throws the error that ended the watch. One caller at a time. */
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

  /** All that is ready, without waiting: empty when there is nothing yet, undefined after the end. Throws the error that ended the watch. */
  take(): readonly WatchItem[] | undefined {
    const items = this.#items
    if (items.length > 0) {
      this.#items = []
      return items
    }
    if (this.#error) throw this.#error
    return this.#ended ? undefined : nothing
  }

  /** What must be waited for before the items can be shown, if anything. */
  prepared(items: readonly WatchItem[]): Promise<void> | undefined {
    return this.#prepare?.(items)
  }

  /** Until `take` has something to say. */
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

  #signal(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}
