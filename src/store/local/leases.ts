/**
 * Leases (L2): who holds which keys, and when they run out. Upstream: etcd's server/lease. After a restart a lease gets its whole time again.
 * The store deletes the keys of an expired lease: `expire` calls it.
 */
import type { Clock, Timer } from '#base/clock'
import type { LeaseId } from '../store.ts'
import { storeError } from '../storeError.ts'

interface Lease {
  readonly id: LeaseId
  readonly ttlSeconds: number
  expiresMs: number
  timer: Timer | undefined
  readonly keys: Set<string>
  /** Its end is being written: only snapshots find it. */
  isEnding: boolean
}

/** Time until the end of an expired lease is tried again. */
const retryMs = 1_000

/** The longest wait a platform timer can hold; a longer lease waits in several. */
const longestTimerMs = 2 ** 31 - 1

export class Leases {
  readonly #clock: Clock
  readonly #expire: (id: LeaseId) => void
  readonly #leases = new Map<LeaseId, Lease>()
  #lastId = 0
  #isClosed = false

  constructor(clock: Clock, expire: (id: LeaseId) => void) {
    this.#clock = clock
    this.#expire = expire
  }

  /** An id that no lease had before, also not before a restart: it grows with the time. */
  newId(): number {
    this.#lastId = Math.max(this.#lastId + 1, Math.floor(this.#clock.now()) * 1024)
    return this.#lastId
  }

  add(id: LeaseId, ttlSeconds: number): void {
    const lease: Lease = { id, ttlSeconds, expiresMs: this.#clock.monotonicMs() + ttlSeconds * 1000, timer: undefined, keys: new Set(), isEnding: false }
    this.#leases.set(id, lease)
    if (typeof id === 'number') this.#lastId = Math.max(this.#lastId, id)
    this.#arm(lease)
  }

  get count(): number {
    return this.#leases.size
  }

  ids(): readonly LeaseId[] {
    return [...this.#leases.values()].flatMap(({ id, isEnding }) => (isEnding ? [] : [id]))
  }

  /** Those whose end is not durable yet are among them. */
  all(): { readonly id: LeaseId; readonly ttlSeconds: number }[] {
    return [...this.#leases.values()].map(({ id, ttlSeconds }) => ({ id, ttlSeconds }))
  }

  /** Undefined when there is no such lease. */
  state(id: LeaseId): { ttlSeconds: number; remainingSeconds: number } | undefined {
    const lease = this.#leases.get(id)
    if (!lease || lease.isEnding) return undefined
    const remainingSeconds = Math.max(0, Math.ceil((lease.expiresMs - this.#clock.monotonicMs()) / 1000))
    return { ttlSeconds: lease.ttlSeconds, remainingSeconds }
  }

  /** From now on no put can name the lease. @returns what ends it for good, and what makes it a lease with its keys again @throws StoreError 'leaseNotFound' */
  beginEnd(id: LeaseId): { readonly complete: () => void; readonly takeBack: () => void } {
    const lease = this.#get(id)
    lease.timer?.cancel()
    lease.isEnding = true
    // A lease of the same id may have been granted meanwhile.
    const isCurrent = () => this.#leases.get(id) === lease
    return {
      complete: () => {
        if (isCurrent()) this.#leases.delete(id)
      },
      takeBack: () => {
        if (!isCurrent()) return
        lease.isEnding = false
        lease.expiresMs = Math.max(lease.expiresMs, this.#clock.monotonicMs() + retryMs)
        this.#arm(lease)
      },
    }
  }

  /** @throws StoreError 'leaseNotFound'. */
  check(id: LeaseId): void {
    this.#get(id)
  }

  keepAlive(id: LeaseId): { ttlSeconds: number } {
    const lease = this.#get(id)
    lease.expiresMs = this.#clock.monotonicMs() + lease.ttlSeconds * 1000
    return { ttlSeconds: lease.ttlSeconds }
  }

  /** None when there is no such lease. */
  keysOf(id: LeaseId): Iterable<string> {
    return this.#leases.get(id)?.keys ?? []
  }

  /** Moves a key from the lease it had to the one it has now; 0 for none. */
  move(key: string, before: LeaseId, now: LeaseId): void {
    if (before) this.#leases.get(before)?.keys.delete(key)
    if (now) this.#leases.get(now)?.keys.add(key)
  }

  close(): void {
    this.#isClosed = true
    for (const lease of this.#leases.values()) lease.timer?.cancel()
  }

  #get(id: LeaseId): Lease {
    const lease = this.#leases.get(id)
    if (!lease || lease.isEnding) throw storeError('leaseNotFound')
    return lease
  }

  /** A kept-alive lease is not re-armed at each keep-alive; its timer looks again when it fires. */
  #arm(lease: Lease): void {
    if (this.#isClosed) return
    const leftMs = lease.expiresMs - this.#clock.monotonicMs()
    lease.timer = this.#clock.timer(Math.min(leftMs, longestTimerMs), () => {
      if (this.#clock.monotonicMs() < lease.expiresMs) this.#arm(lease)
      else this.#expire(lease.id)
    })
  }
}
