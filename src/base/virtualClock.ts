/**
 * A clock that only `advance` moves (L0), for tests and for clusters under virtual time.
 * Invariants: timers fire in order of due time, then of creation; promises settle before the next timer fires;
 * a timer that keeps re-arming itself at one instant is reported as a runaway, as is work that reports itself.
 */
import type { Clock, Timer } from './clock.ts'
import { Heap } from './heap.ts'
import { parseTime } from './time.ts'

interface Due {
  /** Undefined: cancelled. */
  fn: (() => void) | undefined
}

/** Timers of one instant, in order of creation. Most timers are time-outs that are cancelled, and those of many requests fall on one instant. */
interface Instant {
  readonly atMs: number
  readonly timers: Due[]
  /** Those before it have fired. */
  next: number
  /** How many are neither cancelled nor have fired. */
  armed: number
}

const maxTimersPerInstant = 100_000

export class VirtualClock implements Clock {
  readonly #order = new Heap<Instant>((a, b) => a.atMs - b.atMs)
  readonly #instants = new Map<number, Instant>()
  readonly #settle: () => Promise<void>
  readonly turn: () => Promise<void>
  #nowMs: number
  readonly #startMs: number
  #runaway: Error | undefined

  /**
   * @param settle lets pending promises and I/O callbacks run; the default drains microtasks only.
   * @param turn resolves in a later turn of the event loop; the default only lets due promises run.
   */
  constructor(
    start: string | number = '2026-01-01T00:00:00Z',
    settle: () => Promise<void> = drainMicrotasks,
    turn: () => Promise<void> = () => Promise.resolve(),
  ) {
    this.#nowMs = typeof start === 'number' ? start : (parseTime(start) ?? 0)
    this.#startMs = this.#nowMs
    this.#settle = settle
    this.turn = turn
  }

  now(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs - this.#startMs
  }

  timer(ms: number, fn: () => void): Timer {
    const instant = this.#instantAt(this.#nowMs + Math.max(0, ms))
    const due: Due = { fn }
    instant.timers.push(due)
    instant.armed++
    return {
      cancel: () => {
        if (!due.fn) return
        due.fn = undefined
        instant.armed--
      },
    }
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const onAbort = () => {
        timer.cancel()
        reject(signal?.reason)
      }
      const timer = this.timer(ms, () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      })
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  readonly runaway = (error: Error): void => {
    this.#runaway ??= error
  }

  /** @throws the Error of a runaway, once */
  throwRunaway(): void {
    const error = this.#runaway
    this.#runaway = undefined
    if (error) throw error
  }

  /**
   * Moves the time on by `ms`, firing every timer that falls due, in order.
   * @throws Error of a runaway
   */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    await this.#yield()
    let fired = 0
    for (let next = this.#peek(); next && next.atMs <= untilMs; next = this.#peek()) {
      fired = next.atMs > this.#nowMs ? 0 : fired + 1
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      const fn = takeFirst(next)
      if (fired > maxTimersPerInstant) throw new Error(`runaway timer: ${fn.toString().slice(0, 120)}`)
      fn()
      await this.#yield()
    }
    // Another call may have moved it further meanwhile.
    this.#nowMs = Math.max(this.#nowMs, untilMs)
    await this.#yield()
  }

  /** Milliseconds until the next timer fires; undefined when none is armed. */
  nextTimerMs(): number | undefined {
    const next = this.#peek()
    return next && next.atMs - this.#nowMs
  }

  async #yield(): Promise<void> {
    await this.#settle()
    this.throwRunaway()
  }

  #instantAt(atMs: number): Instant {
    let instant = this.#instants.get(atMs)
    if (!instant) {
      instant = { atMs, timers: [], next: 0, armed: 0 }
      this.#instants.set(atMs, instant)
      this.#order.push(instant)
    }
    return instant
  }

  /** The first instant at which something is armed; those before it are dropped. */
  #peek(): Instant | undefined {
    for (let first = this.#order.peek(); first; first = this.#order.peek()) {
      if (first.armed > 0) return first
      this.#order.pop()
      this.#instants.delete(first.atMs)
    }
    return undefined
  }
}

/** Takes the first timer that is armed: there must be one. */
function takeFirst(instant: Instant): () => void {
  for (;;) {
    const due = instant.timers[instant.next++]
    if (!due) throw new Error('an instant of the virtual clock counts a timer that it does not have')
    const { fn } = due
    if (!fn) continue
    due.fn = undefined
    instant.armed--
    return fn
  }
}

async function drainMicrotasks(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve()
}
