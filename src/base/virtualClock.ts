/**
 * A clock that moves only when told (L0), for tests and for clusters under virtual time.
 * Invariants: timers fire in order of due time, then of creation; promises settle before the next timer fires;
 * a timer that keeps re-arming itself without the time moving on is reported, not looped on for ever.
 */
import type { Clock, Timer } from './clock.ts'
import { Heap } from './heap.ts'
import { parseTime } from './time.ts'

interface Due {
  atMs: number
  fn: (() => void) | undefined
}

const maxTimersPerInstant = 100_000

export class VirtualClock implements Clock {
  readonly #timers = new Heap<Due>((a, b) => a.atMs - b.atMs)
  readonly #yield: () => Promise<void>
  #nowMs: number
  readonly #startMs: number

  /** @param settle lets pending promises and I/O callbacks run; the default drains microtasks only. */
  constructor(start: string | number = '2026-01-01T00:00:00Z', settle: () => Promise<void> = drainMicrotasks) {
    this.#nowMs = typeof start === 'number' ? start : (parseTime(start) ?? 0)
    this.#startMs = this.#nowMs
    this.#yield = settle
  }

  now(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs - this.#startMs
  }

  timer(ms: number, fn: () => void): Timer {
    const due: Due = { atMs: this.#nowMs + Math.max(0, ms), fn }
    this.#timers.push(due)
    return {
      cancel: () => {
        due.fn = undefined
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

  /** Moves the time on by `ms`, firing every timer that falls due, in order. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    await this.#yield()
    for (let fired = 0; ; ) {
      const next = this.#timers.peek()
      if (!next || next.atMs > untilMs) break
      this.#timers.pop()
      if (!next.fn) continue
      fired = next.atMs > this.#nowMs ? 0 : fired + 1
      if (fired > maxTimersPerInstant) throw new Error(`runaway timer: ${next.fn.toString().slice(0, 120)}`)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.fn()
      await this.#yield()
    }
    this.#nowMs = untilMs
    await this.#yield()
  }

  /** Milliseconds until the next timer fires; undefined when none is armed. */
  nextTimerMs(): number | undefined {
    for (let next = this.#timers.peek(); next; next = this.#timers.peek()) {
      if (next.fn) return next.atMs - this.#nowMs
      this.#timers.pop()
    }
    return undefined
  }
}

async function drainMicrotasks(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve()
}
