/** Metrics in Prometheus' form (L5), by prom-client. Each process has its own registry: nothing global. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { MetricOptions, Metrics } from '#base/metrics'

export interface PrometheusMetrics extends Metrics {
  /** The exposition text. */
  render(): Promise<string>
  readonly contentType: string
}

export function createPrometheusMetrics(): PrometheusMetrics {
  const registry = new Registry()
  const known = new Map<string, unknown>()
  /** Asking twice for a name gives the same metric; prom-client itself would throw. */
  const once = <T>(name: string, make: () => T): T => {
    const found = known.get(name)
    if (found) return found as T
    const made = make()
    known.set(name, made)
    return made
  }
  const settings = (options: MetricOptions) => ({ name: options.name, help: options.help, labelNames: [...(options.labels ?? [])], registers: [registry] })
  return {
    counter: (options) =>
      once(options.name, () => {
        const counter = new Counter(settings(options))
        return { inc: (labels = {}, by = 1) => counter.inc(labels, by) }
      }),
    gauge: (options) =>
      once(options.name, () => {
        const gauge = new Gauge(settings(options))
        return {
          set: (value, labels = {}) => gauge.set(labels, value),
          inc: (labels = {}, by = 1) => gauge.inc(labels, by),
          dec: (labels = {}, by = 1) => gauge.dec(labels, by),
          remove: (labels) => gauge.remove(labels),
        }
      }),
    histogram: (options) =>
      once(options.name, () => {
        const histogram = new Histogram({ ...settings(options), ...(options.buckets ? { buckets: [...options.buckets] } : {}) })
        return { observe: (value, labels = {}) => histogram.observe(labels, value) }
      }),
    render: () => registry.metrics(),
    contentType: registry.contentType,
  }
}
