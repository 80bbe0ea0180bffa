/**
 * Records a ratio that changes with time in a histogram, with one sample per nanosecond (L3).
 * Upstream: apiserver/pkg/util/flowcontrol/metrics/timing_ratio_histogram.go.
 */
import type { HistogramSeries } from '#base/metrics'

const nanosecondsPerMs = 1e6

export class TimedRatio {
  readonly #series: HistogramSeries
  #numerator = 0
  #denominator = 1
  #sinceMs: number

  constructor(series: HistogramSeries, nowMs: number) {
    this.#series = series
    this.#sinceMs = nowMs
  }

  set(numerator: number, nowMs: number): void {
    if (numerator === this.#numerator) return
    this.note(nowMs)
    this.#numerator = numerator
  }

  setDenominator(denominator: number, nowMs: number): void {
    if (denominator === this.#denominator) return
    this.note(nowMs)
    this.#denominator = denominator
  }

  /** Records the value for the time until now. */
  note(nowMs: number): void {
    const nanoseconds = Math.round((nowMs - this.#sinceMs) * nanosecondsPerMs)
    if (nanoseconds > 0) this.#series.observe(this.#numerator / this.#denominator, nanoseconds)
    this.#sinceMs = nowMs
  }
}
