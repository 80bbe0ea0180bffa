/**
 * Computes the Retry-After of refused requests in seconds (L3), from how many were refused lately: doubled while requests are refused, one less
 * for every second without refusals. Pure: the time is an argument.
 * Upstream: apiserver/pkg/util/flowcontrol/dropped_requests_tracker.go.
 */
interface SecondStat {
  readonly second: number
  readonly requests: number
}

const mostRetryAfter = 32

export class DroppedRequests {
  #history: SecondStat[] = []
  #currentSecond = 0
  #currentCount = 0
  #retryAfter = 1
  #raisedAt = 0

  /** In seconds. */
  get retryAfter(): number {
    return this.#retryAfter
  }

  /** @param second whole seconds since the epoch */
  record(second: number): void {
    if (this.#currentSecond === second) {
      this.#currentCount++
      return
    }
    this.#remember({ second: this.#currentSecond, requests: this.#currentCount }, second)
    this.#currentSecond = second
    this.#currentCount = 1
    this.#update(second)
  }

  #remember(stat: SecondStat, now: number): void {
    const mostAge = Math.min(2 * this.#retryAfter, mostRetryAfter)
    this.#history = [...this.#history, stat].filter(({ second }) => now - second <= mostAge)
  }

  #update(now: number): void {
    const recent = this.#history.filter(({ second }) => second < now && now - second <= this.#retryAfter)
    const dropped = recent.reduce((sum, { requests }) => sum + requests, 0)
    if (now - this.#raisedAt >= this.#retryAfter && dropped >= 3 * this.#retryAfter) {
      this.#retryAfter = Math.min(2 * this.#retryAfter, mostRetryAfter)
      this.#raisedAt = now
    } else if (dropped < this.#retryAfter && this.#retryAfter > 1) this.#retryAfter--
  }
}
