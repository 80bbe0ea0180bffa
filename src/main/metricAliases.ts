/**
 * Metrics under the names that the reference documents give them (L5), made of upstream's at a scrape: names that upstream does not have any more, or never had.
 * Shown by --reference-metrics alone. Pure.
 */
import type { HistogramFamily, HistogramSample, MetricFamily } from '#base/metricFamily'

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

/** @param families upstream's among them */
export function aliasesOf(families: readonly MetricFamily[]): MetricFamily[] {
  return aliases.flatMap(({ name, of, as }): MetricFamily[] => {
    const family = families.find((one) => one.name === of)
    if (family?.type !== 'histogram') return []
    const head = { name, help: `As ${of}, under the name of the reference documents.` }
    if (as === 'histogram') return [{ ...family, ...head }]
    return [{ ...head, type: 'summary', samples: [...family.samples].map((sample) => summarized(sample, family)) }]
  })
}

function summarized({ labels, counts, sum }: HistogramSample, { bounds }: HistogramFamily) {
  let count = 0
  const buckets = counts.map((own, at) => {
    count += own
    return { bound: bounds[at] ?? Number.POSITIVE_INFINITY, count }
  })
  return { labels, count, sum, quantiles: quantiles.map((quantile) => ({ quantile, value: quantileOf(buckets, quantile) })) }
}

/** As Prometheus' histogram_quantile: linear within a bucket, and the last bound beyond it. @param buckets each with the observations up to its bound */
export function quantileOf(buckets: readonly { readonly bound: number; readonly count: number }[], quantile: number): number {
  const rank = quantile * (buckets.at(-1)?.count ?? 0)
  const at = buckets.findIndex(({ count }) => count >= rank)
  const found = buckets[at]
  if (!found || rank === 0) return Number.NaN
  const before = buckets[at - 1] ?? { bound: 0, count: 0 }
  if (found.bound === Number.POSITIVE_INFINITY) return before.bound
  return before.bound + ((found.bound - before.bound) * (rank - before.count)) / (found.count - before.count)
}
