/**
 * Metrics under the names that the reference documents give them (L5), made of upstream's at a scrape: names that upstream does not have any more, or never had.
 * Shown by --reference-metrics alone. Pure.
 */
import { labelPair, numberText, sampleLine } from '#base/prometheusText'

interface Alias {
  readonly name: string
  /** Upstream's histogram. */
  readonly of: string
  readonly as: 'histogram' | 'quantiles'
}

const aliases: readonly Alias[] = [
  { name: 'scheduler_scheduling_duration_seconds', of: 'scheduler_scheduling_attempt_duration_seconds', as: 'quantiles' },
  { name: 'controller_sync_duration_seconds', of: 'workqueue_work_duration_seconds', as: 'histogram' },
]
const quantiles = [0.5, 0.9, 0.99]

/** @param text the exposition that holds upstream's metrics */
export function aliasesOf(text: string): string {
  return aliases.map((alias) => aliasText(alias, text)).join('')
}

function aliasText({ name, of, as }: Alias, text: string): string {
  const own = text.split('\n').filter((line) => line.startsWith(`${of}_`))
  if (own.length === 0) return ''
  const head = `# HELP ${name} As ${of}, under the name of the reference documents.\n# TYPE ${name} ${as === 'histogram' ? as : 'summary'}\n`
  const lines = as === 'histogram' ? own.map((line) => line.replace(of, name)) : quantileLines(name, of, own)
  return `${head}${lines.join('\n')}\n`
}

interface Series {
  readonly buckets: { readonly bound: number; readonly count: number }[]
}

function quantileLines(name: string, of: string, lines: readonly string[]): string[] {
  const series = new Map<string, Series>()
  for (const line of lines) {
    const [, labels = '', bound = '', count = ''] = /_bucket\{(.*?),?le="([^"]+)"\} (\S+)$/.exec(line) ?? []
    if (bound === '') continue
    const one = series.get(labels) ?? { buckets: [] }
    one.buckets.push({ bound: bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound), count: Number(count) })
    series.set(labels, one)
  }
  const values = [...series].flatMap(([labels, { buckets }]) =>
    quantiles.map((quantile) => {
      const pairs = [...(labels === '' ? [] : [labels]), labelPair('quantile', numberText(quantile))]
      return sampleLine(name, pairs, quantileOf(buckets, quantile))
    }),
  )
  const totals = lines.filter((line) => /_(sum|count)[{ ]/.test(line)).map((line) => line.replace(of, name))
  return [...values, ...totals]
}

/** As Prometheus' histogram_quantile: linear within a bucket, and the last bound beyond it. */
export function quantileOf(buckets: Series['buckets'], quantile: number): number {
  const rank = quantile * (buckets.at(-1)?.count ?? 0)
  const at = buckets.findIndex(({ count }) => count >= rank)
  const found = buckets[at]
  if (!found || rank === 0) return Number.NaN
  const before = buckets[at - 1] ?? { bound: 0, count: 0 }
  if (found.bound === Number.POSITIVE_INFINITY) return before.bound
  return before.bound + ((found.bound - before.bound) * (rank - before.count)) / (found.count - before.count)
}
