/** Families that are computed for every scrape, with their labels by name (L3, pure). */
import { labelsText, type MetricFamily } from '#base/metricFamily'

export type Labels = Readonly<Record<string, string>>

export interface LabelledSample {
  readonly labels?: Labels | undefined
  readonly value: number
  /** When it was measured. */
  readonly atMs?: number | undefined
}

export interface LabelledFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly samples: readonly LabelledSample[]
}

/** Labels as Prometheus' client writes them. */
export function sorted(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The same families with their labels as text. */
export function metricFamilies(families: readonly LabelledFamily[]): MetricFamily[] {
  return families.map((family) => ({ ...family, samples: family.samples.map(({ labels = {}, value, atMs }) => ({ labels: labelsText(labels), value, atMs })) }))
}
