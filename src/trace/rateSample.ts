/** A sample for a reader who watches the whole server (L2): at most so many requests a second, and as many events. What is left out is counted. */

export interface SampleCounts {
  /** Requests since the sample began. */
  readonly seen: number
  /** Those of them that are recorded. */
  readonly kept: number
}

/** Fills up to one second's worth: what arrives together, such as the requests of one apply, is recorded together. */
class Allowance {
  #left: number
  #atMs: number

  constructor(perSecond: number, nowMs: number) {
    this.#left = perSecond
    this.#atMs = nowMs
  }

  hasRoom(perSecond: number, nowMs: number): boolean {
    this.#left = Math.min(perSecond, this.#left + ((nowMs - this.#atMs) * perSecond) / 1000)
    this.#atMs = nowMs
    return this.#left >= 1
  }

  take(): void {
    this.#left--
  }
}

export class RateSample {
  #perSecond: number
  #untilMs: number
  readonly #requests: Allowance
  readonly #events: Allowance
  #seen = 0
  #kept = 0

  constructor(perSecond: number, seconds: number, nowMs: number) {
    this.#perSecond = perSecond
    this.#untilMs = nowMs + seconds * 1000
    this.#requests = new Allowance(perSecond, nowMs)
    this.#events = new Allowance(perSecond, nowMs)
  }

  get counts(): SampleCounts {
    return { seen: this.#seen, kept: this.#kept }
  }

  /** Several readers share one sample. */
  extend(perSecond: number, seconds: number, nowMs: number): void {
    this.#perSecond = Math.max(this.#perSecond, perSecond)
    this.#untilMs = Math.max(this.#untilMs, nowMs + seconds * 1000)
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.#untilMs
  }

  takesRequest(nowMs: number): boolean {
    this.#seen++
    if (!this.#requests.hasRoom(this.#perSecond, nowMs)) return false
    this.#requests.take()
    this.#kept++
    return true
  }

  hasRoomForEvent(nowMs: number): boolean {
    return this.#events.hasRoom(this.#perSecond, nowMs)
  }

  tookEvent(): void {
    this.#events.take()
  }
}
