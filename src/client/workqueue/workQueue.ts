/**
 * The queue between events and workers (L2): an item waits at most once, is worked on by at most one worker, and comes again if it was added
 * meanwhile; it can be added later, or after a wait that grows with each failure. Upstream: client-go/util/workqueue (v1.36).
 */
import type { Clock, Timer } from '#base/clock'
import { Heap } from '#base/heap'
import { type Metrics, noMetrics } from '#base/metrics'
import { createQueueMetrics, type QueueMetrics } from './metrics.ts'
import { defaultControllerRateLimiter, type RateLimiter } from './rateLimiter.ts'
import { ReadyItems } from './readyItems.ts'

export interface WorkQueue<T> {
  /** Items waiting to be taken, not those under work or delayed. */
  readonly length: number
  readonly shuttingDown: boolean
  /** Items of a higher priority are handed out first; an item that waits moves up, never down. Default 0. */
  add(item: T, priority?: number): void
  /** Adds after `ms`; the earliest of several wishes for one item counts. */
  addAfter(item: T, ms: number, priority?: number): void
  /** Adds after the item's back-off. */
  addRateLimited(item: T, priority?: number): void
  /** The item succeeded (or is given up): its back-off starts over. */
  forget(item: T): void
  numRequeues(item: T): number
  /** Takes the next item, waiting for one; undefined once the queue is shut down and empty. Every take needs its {@link done}. */
  get(): Promise<T | undefined>
  done(item: T): void
  /** How long an item under work had waited; undefined: waits are not measured. */
  waitedMs(item: T): number | undefined
  /** No more adds; what is queued is still handed out. */
  shutDown(): void
  /** Like shutDown; resolves when everything queued has been taken and done. */
  shutDownWithDrain(): Promise<void>
}

export interface WorkQueueOptions<T> {
  readonly clock: Clock
  /** Names the queue in metrics. */
  readonly name?: string
  readonly metrics?: Metrics
  readonly rateLimiter?: RateLimiter<T>
}

export function createWorkQueue<T>(options: WorkQueueOptions<T>): WorkQueue<T> {
  return new Queue(
    options.clock,
    options.rateLimiter ?? defaultControllerRateLimiter(options.clock),
    createQueueMetrics(options.metrics ?? noMetrics, options.name ?? '', options.clock),
  )
}

interface Delayed<T> {
  readonly item: T
  readonly priority: number
  readonly readyMs: number
}

class Queue<T> implements WorkQueue<T> {
  readonly #queue = new ReadyItems<T>()
  /** Items with pending work and their priority: waiting, or to be queued again after done. */
  readonly #dirty = new Map<T, number>()
  /** Items under work, and how long each had waited. */
  readonly #processing = new Map<T, number | undefined>()
  readonly #takers: ((item: T | undefined) => void)[] = []
  readonly #drained: (() => void)[] = []
  readonly #delayed = new Heap<Delayed<T>>((a, b) => a.readyMs - b.readyMs)
  readonly #delayedByItem = new Map<T, Delayed<T>>()
  readonly #clock: Clock
  readonly #limiter: RateLimiter<T>
  readonly #metrics: QueueMetrics<T>
  #timer: Timer | undefined
  #timerAtMs = 0
  #down = false

  constructor(clock: Clock, limiter: RateLimiter<T>, metrics: QueueMetrics<T>) {
    this.#clock = clock
    this.#limiter = limiter
    this.#metrics = metrics
  }

  get length(): number {
    return this.#queue.size
  }

  get shuttingDown(): boolean {
    return this.#down
  }

  add(item: T, priority = 0): void {
    if (this.#down) return
    const waiting = this.#dirty.get(item)
    if (waiting !== undefined) {
      if (waiting >= priority) return
      this.#dirty.set(item, priority)
      this.#queue.raise(item, waiting, priority)
      return
    }
    this.#metrics.added(item)
    this.#dirty.set(item, priority)
    if (!this.#processing.has(item)) this.#enqueue(item, priority)
  }

  addAfter(item: T, ms: number, priority = 0): void {
    if (this.#down) return
    this.#metrics.retried()
    if (ms <= 0) {
      this.add(item, priority)
      return
    }
    const readyMs = this.#clock.monotonicMs() + ms
    const there = this.#delayedByItem.get(item)
    if (there && there.readyMs <= readyMs) return
    // An earlier time replaces a later one: the old heap entry is dropped when its time is reached.
    const delayed = { item, priority, readyMs }
    this.#delayedByItem.set(item, delayed)
    this.#delayed.push(delayed)
    this.#arm()
  }

  addRateLimited(item: T, priority = 0): void {
    if (!this.#down) this.addAfter(item, this.#limiter.when(item), priority)
  }

  forget(item: T): void {
    this.#limiter.forget(item)
  }

  numRequeues(item: T): number {
    return this.#limiter.numRequeues(item)
  }

  get(): Promise<T | undefined> {
    const first = this.#queue.shift()
    if (first) {
      this.#take(first.item)
      return Promise.resolve(first.item)
    }
    if (this.#down) return Promise.resolve(undefined)
    return new Promise((resolve) => this.#takers.push(resolve))
  }

  done(item: T): void {
    if (!this.#processing.delete(item)) return
    this.#metrics.done(item)
    const again = this.#dirty.get(item)
    if (again !== undefined) this.#enqueue(item, again)
    this.#checkDrained()
  }

  waitedMs(item: T): number | undefined {
    return this.#processing.get(item)
  }

  shutDown(): void {
    if (this.#down) return
    this.#down = true
    this.#timer?.cancel()
    this.#delayedByItem.clear()
    this.#metrics.stop()
    for (const taker of this.#takers.splice(0)) taker(undefined)
    this.#checkDrained()
  }

  shutDownWithDrain(): Promise<void> {
    this.shutDown()
    return new Promise((resolve) => {
      this.#drained.push(resolve)
      this.#checkDrained()
    })
  }

  #enqueue(item: T, priority: number): void {
    const taker = this.#takers.shift()
    if (taker) {
      this.#take(item)
      taker(item)
    } else this.#queue.add(item, priority)
  }

  #take(item: T): void {
    this.#dirty.delete(item)
    this.#processing.set(item, this.#metrics.taken(item))
  }

  #checkDrained(): void {
    if (!this.#down || this.#processing.size > 0 || this.#queue.size > 0) return
    for (const resolve of this.#drained.splice(0)) resolve()
  }

  #arm(): void {
    const next = this.#delayed.peek()
    if (!next || this.#down) return
    if (this.#timer && this.#timerAtMs <= next.readyMs) return
    this.#timer?.cancel()
    this.#timerAtMs = next.readyMs
    this.#timer = this.#clock.timer(next.readyMs - this.#clock.monotonicMs(), () => this.#release())
  }

  #release(): void {
    this.#timer = undefined
    const nowMs = this.#clock.monotonicMs()
    for (let next = this.#delayed.peek(); next && next.readyMs <= nowMs; next = this.#delayed.peek()) {
      this.#delayed.pop()
      if (this.#delayedByItem.get(next.item) !== next) continue
      this.#delayedByItem.delete(next.item)
      this.add(next.item, next.priority)
    }
    this.#arm()
  }
}
