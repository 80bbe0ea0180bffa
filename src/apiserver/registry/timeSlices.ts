/** Ends a turn of the event loop by time (L3), for loops whose steps take between a microsecond and tens of milliseconds. */
import type { Clock } from '#base/clock'

/** One step more may follow, so that a turn stays short enough for other requests. */
const sliceMs = 20

export class TimeSlices {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'turn'>
  #begunMs: number

  constructor(clock: Pick<Clock, 'monotonicMs' | 'turn'>) {
    this.#clock = clock
    this.#begunMs = clock.monotonicMs()
  }

  /** Call after each step. @returns a promise to wait for before the next step; undefined while the turn has time left */
  next(): Promise<void> | undefined {
    return this.#clock.monotonicMs() - this.#begunMs < sliceMs ? undefined : this.#turn()
  }

  async #turn(): Promise<void> {
    await this.#clock.turn()
    this.#begunMs = this.#clock.monotonicMs()
  }
}
