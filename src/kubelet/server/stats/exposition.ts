/** Metrics that are computed for every scrape, in Prometheus' text format with times (L3, pure). */
import { bareMap } from '#base/bareMap'

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

const escapes: Readonly<Record<string, string>> = bareMap({ '\\': '\\\\', '\n': '\\n', '"': '\\"' })
const escaped = (value: string) => value.replace(/[\\\n"]/g, (sign) => escapes[sign] ?? sign)

function sampleText(name: string, { labels, value, atMs }: Sample): string {
  const pairs = Object.entries(labels ?? {}).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}${atMs === undefined ? '' : ` ${atMs}`}`
}

/** Families without samples are left out. */
export function exposition(families: readonly MetricFamily[]): string {
  const present = families.filter(({ samples }) => samples.length > 0)
  return present
    .map(({ name, type, help, samples }) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples.map((sample) => sampleText(name, sample)).join('\n')}\n`)
    .join('')
}
