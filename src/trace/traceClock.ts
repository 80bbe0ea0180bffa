/** Time with fractions of a millisecond (L2): the monotonic clock's, set by the wall clock, which has whole milliseconds. */
import type { Clock } from '#base/clock'

/** By how much the two clocks may differ before the wall clock's time is taken again. */
const toleratedMs = 2

/** Its times never go back. */
export interface RecordClock {
  /** Milliseconds since the epoch. */
  now(): number
}

export class TraceClock {
  readonly #clock: Clock
  #offsetMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#offsetMs = clock.now() - clock.monotonicMs()
  }

  /** Milliseconds since the epoch. */
  now(): number {
    return this.#offsetMs + this.#clock.monotonicMs()
  }

  /** Takes the wall clock's time again after it was set. The clock of one record stays with the time that it began with. */
  ofRecord(): RecordClock {
    const ahead = this.#clock.now() - this.now()
    if (Math.abs(ahead) > toleratedMs) this.#offsetMs += ahead
    const offsetMs = this.#offsetMs
    return { now: () => offsetMs + this.#clock.monotonicMs() }
  }
}
