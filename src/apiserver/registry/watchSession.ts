/**
 * One open watch (L3): a bounded queue between the cache, which never waits, and a consumer, which may be slow. A consumer that falls
 * too far behind is cut off; the others do not notice.
 */
import type { StatusError } from '#api/machinery/status'
import type { WatchedEvent } from './watchEvent.ts'

export interface Bookmark {
  readonly type: 'BOOKMARK'
  readonly revision: number
  /** Ends the initial events of a streaming list. */
  readonly initialEventsEnd: boolean
}

export type WatchItem = WatchedEvent | Bookmark

export class WatchSession {
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
    while (this.#items.length === 0) {
      if (this.#error) throw this.#error
      if (this.#ended) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const items = this.#items
    this.#items = []
    const pending = this.#prepare?.(items)
    if (pending) await pending
    return items
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
