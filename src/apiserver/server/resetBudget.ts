/**
 * How many streams a client may still reset on one HTTP/2 connection (L3): 1,000 at once, or 33 a second for long. A reset costs the client next to
 * nothing, but the server the work that it had begun. Shortly before the limit the connection gets GOAWAY, at the limit it is closed; the client can
 * open another. Pure. Upstream has no such limit; nghttp2: lib/nghttp2_ratelim.c.
 */
const burst = 1_000
const perSecond = 33
/** Budget that remains at GOAWAY, for streams that are still open. */
const reserve = 200

export class ResetBudget {
  #left = burst
  #second: number

  /** `nowMs` is a time that never goes back. */
  constructor(nowMs: number) {
    this.#second = Math.floor(nowMs / 1000)
  }

  /** Counts one reset. @returns what to do with its connection */
  take(nowMs: number): 'goOn' | 'endGracefully' | 'cut' {
    const second = Math.floor(nowMs / 1000)
    const passed = second - this.#second
    if (passed > 0) {
      this.#left = Math.min(burst, this.#left + passed * perSecond)
      this.#second = second
    }
    this.#left--
    if (this.#left <= 1) return 'cut'
    return this.#left <= reserve ? 'endGracefully' : 'goOn'
  }
}
