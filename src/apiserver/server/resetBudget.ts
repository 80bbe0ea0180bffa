/**
 * How many streams a client may still reset on one HTTP/2 connection (L3). Node's HTTP/2 library stops answering on a connection without a word
 * when more than 1,000 come at once, or 33 a second for long (its guard against floods of resets), which leaves the client waiting for ever.
 * So the same account is kept here: before that point the connection is told to end, and at it, cut, and the client comes back on another.
 * Upstream has no such limit; nghttp2: lib/nghttp2_ratelim.c.
 */
const burst = 1_000
const perSecond = 33
/** What is left for streams that are still open when the connection is told to end. */
const reserve = 200

export class ResetBudget {
  #left = burst
  #second: number

  /** `nowMs` is a time that never goes back. */
  constructor(nowMs: number) {
    this.#second = Math.floor(nowMs / 1000)
  }

  /** Counts one reset, and says what has to happen to its connection. */
  take(nowMs: number): 'goOn' | 'endGracefully' | 'cut' {
    const second = Math.floor(nowMs / 1000)
    // A second less is given back than may have passed, since the library's seconds begin at other moments.
    const passed = Math.max(0, second - this.#second - 1)
    if (passed > 0) {
      this.#left = Math.min(burst, this.#left + passed * perSecond)
      this.#second = second - 1
    }
    this.#left--
    if (this.#left <= 1) return 'cut'
    return this.#left <= reserve ? 'endGracefully' : 'goOn'
  }
}
