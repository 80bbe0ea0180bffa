/**
 * Integrates a number over time (L3): average, deviation and peak since the last read. Pure: the time is an argument.
 * Upstream: apiserver/pkg/util/flowcontrol/fairqueuing/integrator.go.
 */
export interface IntegratorResults {
  readonly seconds: number
  /** Weighted by time. NaN over no time. */
  readonly average: number
  readonly deviation: number
  readonly max: number
}

export class Integrator {
  #lastMs: number
  #value = 0
  #max = 0
  #seconds = 0
  #integral = 0
  #integralOfSquare = 0

  constructor(nowMs: number) {
    this.#lastMs = nowMs
  }

  set(value: number, nowMs: number): void {
    this.#advance(nowMs)
    this.#value = value
    if (value > this.#max) this.#max = value
  }

  /** Returns the results since the last reset, and starts a new period. */
  reset(nowMs: number): IntegratorResults {
    this.#advance(nowMs)
    const seconds = this.#seconds
    const average = seconds > 0 ? this.#integral / seconds : Number.NaN
    const variance = seconds > 0 ? this.#integralOfSquare / seconds - average * average : Number.NaN
    const results = { seconds, average, deviation: variance >= 0 ? Math.sqrt(variance) : Number.NaN, max: this.#max }
    this.#seconds = 0
    this.#integral = 0
    this.#integralOfSquare = 0
    this.#max = this.#value
    return results
  }

  #advance(nowMs: number): void {
    const seconds = (nowMs - this.#lastMs) / 1000
    this.#lastMs = nowMs
    this.#seconds += seconds
    this.#integral += this.#value * seconds
    this.#integralOfSquare += this.#value * this.#value * seconds
  }
}
