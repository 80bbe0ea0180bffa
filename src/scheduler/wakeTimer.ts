/** One timer for the earliest of many wake-ups (L3). */
import type { Clock, Timer } from '#base/clock'

export class WakeTimer {
  readonly #clock: Clock
  readonly #wake: () => void
  #armed: { readonly atMs: number; readonly timer: Timer } | undefined

  constructor(clock: Clock, wake: () => void) {
    this.#clock = clock
    this.#wake = wake
  }

  arm(atMs: number): void {
    if (this.#armed && this.#armed.atMs <= atMs) return
    this.#armed?.timer.cancel()
    const timer = this.#clock.timer(Math.max(0, atMs - this.#clock.now()), () => {
      this.#armed = undefined
      this.#wake()
    })
    this.#armed = { atMs, timer }
  }

  cancel(): void {
    this.#armed?.timer.cancel()
    this.#armed = undefined
  }
}
