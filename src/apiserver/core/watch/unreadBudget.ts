/**
 * What watchers that do not read keep alive in large objects (L3), counted once however many wait for the same version. Beyond the budget those go
 * first who are furthest behind: they come back and resume, or list again. Upstream bounds the number of events per watcher alone
 * (cacheWatcher's channel) and ends a watcher whose channel stays full.
 */
import { isLargeObject } from '../fairLoop.ts'
import type { CacheEntry } from './cacheEntry.ts'

const mostUnreadBytes = 16 * 1024 * 1024

/** A watcher that can be cut off. */
export interface UnreadHolder {
  cutOff(): void
}

export class UnreadBudget {
  /** In the order in which they were queued first. */
  readonly #holders = new Map<CacheEntry, Set<UnreadHolder>>()
  #bytes = 0
  readonly #mostBytes: number

  constructor(mostBytes = mostUnreadBytes) {
    this.#mostBytes = mostBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** What the holder has not read yet. Some holders may be cut off, this one among them. */
  hold(entry: CacheEntry, holder: UnreadHolder): void {
    if (!isLargeObject(entry.storedBytes)) return
    const holders = this.#holders.get(entry)
    if (holders) {
      holders.add(holder)
      return
    }
    this.#holders.set(entry, new Set([holder]))
    this.#bytes += entry.storedBytes
    while (this.#bytes > this.#mostBytes && this.#holders.size > 1) this.#cutOffSlowest()
  }

  release(entry: CacheEntry, holder: UnreadHolder): void {
    if (!isLargeObject(entry.storedBytes)) return
    const holders = this.#holders.get(entry)
    if (!holders?.delete(holder) || holders.size > 0) return
    this.#holders.delete(entry)
    this.#bytes -= entry.storedBytes
  }

  #cutOffSlowest(): void {
    const [oldest] = this.#holders
    if (!oldest) return
    const [entry, holders] = oldest
    for (const holder of [...holders]) {
      holder.cutOff()
      this.release(entry, holder)
    }
  }
}
