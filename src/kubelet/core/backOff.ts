/**
 * Exponential back-off per key (L3), as crash loops and image pulls use it: each failure doubles the wait up to a maximum;
 * a quiet time of twice the maximum forgets. Upstream: client-go/util/flowcontrol Backoff (v1.36).
 */
import type { Clock } from '#base/clock'

interface Entry {
  backOffMs: number
  lastUpdateMs: number
}

export class BackOff {
  readonly #entries = new Map<string, Entry>()
  readonly #clock: Clock
  readonly #initialMs: number
  readonly #maxMs: number

  constructor(clock: Clock, initialMs: number, maxMs: number) {
    this.#clock = clock
    this.#initialMs = initialMs
    this.#maxMs = maxMs
  }

  /** The current wait of a key in milliseconds; 0 for a key that never failed. */
  get(key: string): number {
    return this.#entries.get(key)?.backOffMs ?? 0
  }

  /** The remaining wait of a key, counted from `sinceMs`, the time of the failure; 0 when it may retry now. */
  remainingMs(key: string, sinceMs: number): number {
    const entry = this.#entries.get(key)
    if (!entry || this.#expired(entry, sinceMs)) return 0
    return Math.max(0, sinceMs + entry.backOffMs - this.#clock.now())
  }

  /** Notes that the key tries again after a failure at `sinceMs`: the next wait is longer. */
  next(key: string, sinceMs: number): void {
    const entry = this.#entries.get(key)
    const backOffMs = !entry || this.#expired(entry, sinceMs) ? this.#initialMs : Math.min(entry.backOffMs * 2, this.#maxMs)
    this.#entries.set(key, { backOffMs, lastUpdateMs: this.#clock.now() })
  }

  /** Forgets keys that start with `prefix`. */
  reset(prefix: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(prefix)) this.#entries.delete(key)
  }

  #expired(entry: Entry, sinceMs: number): boolean {
    return sinceMs - entry.lastUpdateMs > this.#maxMs * 2
  }
}
