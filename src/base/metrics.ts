/**
 * The metrics facade (L0): what components record. The Prometheus implementation lives in main/.
 * Names, labels and buckets are upstream's: they are part of the API.
 */
import { kubernetesMajor, kubernetesMinor } from './version.ts'

export type Labels = Readonly<Record<string, string | number>>

export interface MetricOptions {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

/** One series: a metric with all its labels given. Recording to it looks nothing up. */
export interface CounterSeries {
  inc(by?: number): void
}
/** Goes up and down. */
export interface GaugeSeries {
  set(value: number): void
  add(by: number): void
}
export interface HistogramSeries {
  /**
   * @param weight as often as that, a whole number; once by default
   * @param trace of the work that was measured, where it is sampled; each bucket shows its newest one to scrapes that take exemplars
   */
  observe(value: number, weight?: number, trace?: ObservedTrace): void
}
/** A span in which a value was observed, and when, in milliseconds since 1970. */
export interface ObservedTrace {
  readonly traceId: string
  readonly spanId: string
  readonly atMs: number
}

export interface Counter {
  inc(labels?: Labels, by?: number): void
  series(labels: Labels): CounterSeries
}
export interface Gauge {
  set(value: number, labels?: Labels): void
  inc(labels?: Labels, by?: number): void
  dec(labels?: Labels, by?: number): void
  remove(labels: Labels): void
  series(labels: Labels): GaugeSeries
}
export interface Histogram {
  observe(value: number, labels?: Labels): void
  series(labels: Labels): HistogramSeries
}

/** Asking twice for one name returns the same metric. */
export interface Metrics {
  counter(options: MetricOptions): Counter
  gauge(options: MetricOptions): Gauge
  /** `buckets`: upper bounds, ascending; absent: 5 ms to 10 s. */
  histogram(options: MetricOptions & { readonly buckets?: readonly number[] }): Histogram
  /** Counts and adds up, without quantiles. */
  summary(options: MetricOptions): Histogram
}

const nothing = () => {}
const noCounter: Counter = { inc: nothing, series: () => ({ inc: nothing }) }
const noGauge: Gauge = { set: nothing, inc: nothing, dec: nothing, remove: nothing, series: () => ({ set: nothing, add: nothing }) }
const noHistogram: Histogram = { observe: nothing, series: () => ({ observe: nothing }) }

/** Records nothing. */
export const noMetrics: Metrics = { counter: () => noCounter, gauge: () => noGauge, histogram: () => noHistogram, summary: () => noHistogram }

/** `count` upper bounds, the first `start`, each `factor` times the one before. */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => start * factor ** i)
}

/** `1.35`. */
export const previousVersion = `${kubernetesMajor}.${Number(kubernetesMinor) - 1}`

/**
 * Checks a version for which hidden metrics are to be shown.
 * @returns why `field` refuses it, in upstream's words; undefined: it does not. Upstream: component-base/metrics/api/v1/config.go
 */
export function hiddenMetricsFault(field: string, version: string): string | undefined {
  if (version === '' || version === previousVersion) return undefined
  return `${field}: Invalid value: "${version}": must be omitted or have the value '${previousVersion}'; only the previous minor version is allowed`
}
