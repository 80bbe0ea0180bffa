/**
 * Bounds the memory of large objects that only unread watches keep alive (L3); a version counts once, however many watchers wait for it. The current
 * version of an object costs nothing, since the cache holds it anyway; it counts once it is replaced. Beyond the budget, the watches that hold the
 * version replaced first are ended; their clients resume or list again. Upstream bounds the number of events per watcher alone (cacheWatcher's
 * channel) and ends a watcher whose channel stays full.
 */
import { isLargeObject } from '../fairLoop.ts'
import type { CacheEntry } from './cacheEntry.ts'

const mostUnreadBytes = 16 * 1024 * 1024

/** A watcher that can be cut off. */
export interface UnreadHolder {
  cutOff(): void
}

export class UnreadBudget {
  readonly #current = new Map<CacheEntry, Set<UnreadHolder>>()
  /** The entries that count, in the order in which they were replaced, or queued if they never were current. */
  readonly #replaced = new Map<CacheEntry, Set<UnreadHolder>>()
  #bytes = 0
  readonly #mostBytes: number

  constructor(mostBytes = mostUnreadBytes) {
    this.#mostBytes = mostBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Counts an entry that the holder has not read. May cut off holders, including this one. */
  hold(entry: CacheEntry, holder: UnreadHolder): void {
    if (!isLargeObject(entry.storedBytes)) return
    const entries = entry.isCurrent ? this.#current : this.#replaced
    const holders = entries.get(entry)
    if (holders) {
      holders.add(holder)
      return
    }
    const first = new Set([holder])
    if (entry.isCurrent) this.#current.set(entry, first)
    else this.#count(entry, first)
  }

  release(entry: CacheEntry, holder: UnreadHolder): void {
    if (!isLargeObject(entry.storedBytes)) return
    const entries = entry.isCurrent ? this.#current : this.#replaced
    const holders = entries.get(entry)
    if (!holders?.delete(holder) || holders.size > 0) return
    entries.delete(entry)
    if (entries === this.#replaced) this.#bytes -= entry.storedBytes
  }

  /** Called when the cache replaces the entry. May cut off holders. */
  replaced(entry: CacheEntry): void {
    entry.isCurrent = false
    if (!isLargeObject(entry.storedBytes)) return
    const holders = this.#current.get(entry)
    if (!holders) return
    this.#current.delete(entry)
    this.#count(entry, holders)
  }

  #count(entry: CacheEntry, holders: Set<UnreadHolder>): void {
    this.#replaced.set(entry, holders)
    this.#bytes += entry.storedBytes
    while (this.#bytes > this.#mostBytes && this.#replaced.size > 1) this.#cutOffSlowest()
  }

  #cutOffSlowest(): void {
    const [oldest] = this.#replaced
    if (!oldest) return
    const [entry, holders] = oldest
    for (const holder of [...holders]) {
      holder.cutOff()
      this.release(entry, holder)
    }
  }
}
