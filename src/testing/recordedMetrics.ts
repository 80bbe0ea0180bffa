/** Metrics that tests can ask (L3): the last value of every series, by name and labels as Prometheus writes them; of histograms, how often. */
import type { Labels, Metrics } from '#base/metrics'

export interface RecordedMetrics extends Metrics {
  /** 'name{a="b"}' → value. Metrics that were never recorded are absent. */
  readonly values: ReadonlyMap<string, number>
}

function keyOf(name: string, labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return pairs.length === 0 ? name : `${name}{${pairs.sort().join(',')}}`
}

export function createRecordedMetrics(): RecordedMetrics {
  const values = new Map<string, number>()
  const add = (key: string, by: number) => void values.set(key, (values.get(key) ?? 0) + by)
  const counter = ({ name }: { readonly name: string }) => ({
    inc: (labels: Labels = {}, by = 1) => add(keyOf(name, labels), by),
    series: (labels: Labels) => ({ inc: (by = 1) => add(keyOf(name, labels), by) }),
  })
  const gauge = ({ name }: { readonly name: string }) => ({
    set: (value: number, labels: Labels = {}) => void values.set(keyOf(name, labels), value),
    inc: (labels: Labels = {}, by = 1) => add(keyOf(name, labels), by),
    dec: (labels: Labels = {}, by = 1) => add(keyOf(name, labels), -by),
    remove: (labels: Labels) => void values.delete(keyOf(name, labels)),
    series: (labels: Labels) => ({
      set: (value: number) => void values.set(keyOf(name, labels), value),
      add: (by: number) => add(keyOf(name, labels), by),
    }),
  })
  const histogram = ({ name }: { readonly name: string }) => ({
    observe: (_value: number, labels: Labels = {}) => add(keyOf(name, labels), 1),
    series: (labels: Labels) => ({ observe: (_value: number, weight = 1) => add(keyOf(name, labels), weight) }),
  })
  return { values, counter, gauge, histogram, summary: histogram }
}
