/**
 * Leases (L2): who holds which keys, and when they run out. Upstream: etcd's server/lease. After a restart a lease gets its whole time again.
 * The store deletes the keys of an expired lease: `expire` calls it.
 */
import type { Clock, Timer } from '#base/clock'
import { storeError } from '../storeError.ts'

interface Lease {
  readonly id: number
  readonly ttlSeconds: number
  expiresMs: number
  timer: Timer | undefined
  readonly keys: Set<string>
}

/** The longest wait a platform timer can hold; a longer lease waits in several. */
const longestTimerMs = 2 ** 31 - 1

export class Leases {
  readonly #clock: Clock
  readonly #expire: (id: number) => void
  readonly #leases = new Map<number, Lease>()
  #lastId = 0

  constructor(clock: Clock, expire: (id: number) => void) {
    this.#clock = clock
    this.#expire = expire
  }

  /** An id that no lease had before, also not before a restart: it grows with the time. */
  newId(): number {
    this.#lastId = Math.max(this.#lastId + 1, Math.floor(this.#clock.now()) * 1024)
    return this.#lastId
  }

  add(id: number, ttlSeconds: number): void {
    const lease: Lease = { id, ttlSeconds, expiresMs: this.#clock.monotonicMs() + ttlSeconds * 1000, timer: undefined, keys: new Set() }
    this.#leases.set(id, lease)
    this.#lastId = Math.max(this.#lastId, id)
    this.#arm(lease)
  }

  remove(id: number): void {
    this.#leases.get(id)?.timer?.cancel()
    this.#leases.delete(id)
  }

  /** @throws StoreError 'leaseNotFound'. */
  check(id: number): void {
    this.#get(id)
  }

  keepAlive(id: number): { ttlSeconds: number } {
    const lease = this.#get(id)
    lease.expiresMs = this.#clock.monotonicMs() + lease.ttlSeconds * 1000
    return { ttlSeconds: lease.ttlSeconds }
  }

  keysOf(id: number): readonly string[] {
    return [...this.#get(id).keys].sort()
  }

  /** Moves a key from the lease it had to the one it has now; 0 for none. */
  move(key: string, before: number, now: number): void {
    if (before) this.#leases.get(before)?.keys.delete(key)
    if (now) this.#leases.get(now)?.keys.add(key)
  }

  close(): void {
    for (const lease of this.#leases.values()) lease.timer?.cancel()
  }

  #get(id: number): Lease {
    const lease = this.#leases.get(id)
    if (!lease) throw storeError('leaseNotFound')
    return lease
  }

  /** A kept-alive lease is not re-armed at each keep-alive; its timer looks again when it fires. */
  #arm(lease: Lease): void {
    const leftMs = lease.expiresMs - this.#clock.monotonicMs()
    lease.timer = this.#clock.timer(Math.min(leftMs, longestTimerMs), () => {
      if (this.#clock.monotonicMs() < lease.expiresMs) this.#arm(lease)
      else this.#expire(lease.id)
    })
  }
}
