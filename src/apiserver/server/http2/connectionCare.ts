/** When a connection has to end although nothing is wrong with its frames (L3): it idles, or its client resets streams without end. */
import type { Clock, Timer } from '#base/clock'
import { ResetBudget } from '../resetBudget.ts'
import { FloodBudget } from './floodBudget.ts'

/** What happens to the connection. */
export interface Cared {
  /** Bytes written to the socket, ever. */
  readonly bytesWritten: number
  endGracefully(): void
  /** Ends it with a word to the client, unless that does not read. */
  letGo(): void
  destroy(): void
}

export class ConnectionCare {
  readonly #cared: Cared
  readonly #clock: Clock
  readonly #resets: ResetBudget
  readonly #flood: FloodBudget
  readonly #monotonicMs: () => number
  #timer: Timer
  /** Requests without their whole answer. */
  #open = 0
  #served = 0

  constructor(cared: Cared, clock: Clock, idleMs: number) {
    this.#cared = cared
    this.#clock = clock
    this.#monotonicMs = () => clock.monotonicMs()
    this.#resets = new ResetBudget(clock.monotonicMs())
    this.#flood = new FloodBudget(clock.monotonicMs())
    this.#timer = this.#watch(idleMs, this.#progress)
  }

  opened(): void {
    this.#open++
    this.#served++
  }

  /** The whole answer is handed over; the stream may stay open until the client has read it. */
  answered(): void {
    this.#open--
  }

  wasReset(): void {
    const verdict = this.#resets.take(this.#clock.monotonicMs())
    if (verdict === 'cut') this.#cared.destroy()
    else if (verdict === 'endGracefully') this.#cared.endGracefully()
  }

  /** False: frames like this one, which further nothing, are a flood by now. */
  tolerates(): boolean {
    return this.#flood.take(this.#monotonicMs)
  }

  release(): void {
    this.#timer.cancel()
  }

  get #progress(): number {
    return this.#served + this.#cared.bytesWritten
  }

  /** Closes a connection that had no request and no progress of an answer for a whole period; at the latest after two periods. */
  #watch(idleMs: number, seen: number): Timer {
    return this.#clock.timer(idleMs, () => {
      if (this.#open === 0 && this.#progress === seen) this.#cared.letGo()
      else this.#timer = this.#watch(idleMs, this.#progress)
    })
  }
}
