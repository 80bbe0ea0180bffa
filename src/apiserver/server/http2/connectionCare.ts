/** Ends connections whose frames are valid, but that idle or reset streams without end (L3). */
import type { Clock, Timer } from '#base/clock'
import { ResetBudget } from '../resetBudget.ts'
import { FloodBudget } from './floodBudget.ts'

/** The connection that is watched. */
export interface Cared {
  /** Total bytes written to the socket. */
  readonly bytesWritten: number
  endGracefully(): void
  /** Sends GOAWAY and closes; destroys the socket if the client does not read. */
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
  /** Requests whose answer is not complete. */
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

  /** Called when an answer is complete; its stream may stay open until the client has read it. */
  answered(): void {
    this.#open--
  }

  wasReset(): void {
    const verdict = this.#resets.take(this.#clock.monotonicMs())
    if (verdict === 'cut') this.#cared.destroy()
    else if (verdict === 'endGracefully') this.#cared.endGracefully()
  }

  /** False: there are so many frames without effect, like this one, that they are a flood. */
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
