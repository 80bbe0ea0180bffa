/**
 * How many frames that further nothing a peer may send (L3): pings, settings, empty data, priorities and the like cost their sender as little as
 * they cost us, so only their number tells a flood. Pure. Upstream has maxQueuedControlFrames (golang.org/x/net/http2), of the same size.
 */
const burst = 10_000
const perSecond = 1_000

export class FloodBudget {
  #left = burst
  #sinceMs: number

  /** `nowMs` is a time that never goes back. */
  constructor(nowMs: number) {
    this.#sinceMs = nowMs
  }

  /** False: it is a flood. The clock is read only when the budget seems spent. */
  take(nowMs: () => number): boolean {
    if (this.#left === 0) {
      const now = nowMs()
      this.#left = Math.min(burst, Math.floor(((now - this.#sinceMs) * perSecond) / 1000))
      this.#sinceMs = now
    }
    if (this.#left === 0) return false
    this.#left--
    return true
  }
}
