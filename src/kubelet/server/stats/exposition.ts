/** Metrics that are computed for every scrape, in Prometheus' text format with times (L3, pure). */
import { familyText, labelPair, sampleLine } from '#base/prometheusText'

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly labels?: Labels | undefined
  readonly value: number
  /** When it was measured. */
  readonly atMs?: number | undefined
}

export interface MetricFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly samples: readonly Sample[]
}

/** Labels as Prometheus' client writes them. */
export function sorted(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function sampleText(name: string, { labels, value, atMs }: Sample): string {
  const pairs = Object.entries(labels ?? {}).map(([label, text]) => labelPair(label, text))
  return sampleLine(name, pairs, value, atMs)
}

/** Families without samples are left out. */
export function exposition(families: readonly MetricFamily[]): string {
  return families
    .map(({ samples, ...head }) =>
      familyText(
        head,
        samples.map((sample) => sampleText(head.name, sample)),
      ),
    )
    .join('')
}
