/** Open requests that a shutdown waits for (L3). Upstream: apimachinery's SafeWaitGroup. */
import type { Clock } from '#base/clock'

export class RequestGroup {
  #open = 0
  #waiting: (() => void) | undefined

  /** False once shutdown waits for the group: a further request would delay it. */
  add(): boolean {
    if (this.#waiting) return false
    this.#open++
    return true
  }

  done(): void {
    this.#open--
    if (this.#open === 0) this.#waiting?.()
  }

  /** Refuses further requests; resolves when the last one has ended, at the latest after `mostMs`, with the number of open ones. */
  wait(clock: Clock, mostMs: number): Promise<number> {
    return new Promise((resolve) => {
      const finish = () => {
        timer.cancel()
        resolve(this.#open)
      }
      const timer = clock.timer(mostMs, finish)
      this.#waiting = finish
      if (this.#open === 0) finish()
    })
  }
}
