/**
 * Metric families as lines of text (L0, pure): Prometheus' format 0.0.4, and the lines that OpenMetrics writes differently (./openMetricsText.ts).
 * Upstream: prometheus/common expfmt/text_create.go.
 */
import { type Exemplar, escaped, type HistogramFamily, labelPair, type MetricFamily, type SummaryFamily, type ValueFamily } from './metricFamily.ts'

/** How a text format writes the parts of a line. */
export interface TextForm {
  /** The lines before a family's samples. */
  head(family: MetricFamily): string
  /** A value that is measured, or a bound. */
  number(value: number): string
  /** A time in milliseconds since 1970. */
  time(atMs: number): string
  /** Absent: the format has no exemplars. */
  readonly exemplar?: (exemplar: Exemplar) => string
}

const prometheusForm: TextForm = {
  head: ({ name, type, help }) => `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n`,
  number: numberText,
  time: String,
}

/** Prometheus' text format 0.0.4. A family without samples has no text. */
export function prometheusText(families: Iterable<MetricFamily>): string {
  let text = ''
  for (const family of families) text += familyText(family, prometheusForm)
  return text
}

/** A family with its head; empty when it has no samples. */
export function familyText(family: MetricFamily, form: TextForm): string {
  const lines = linesOf(family, form)
  return lines === '' ? '' : form.head(family) + lines
}

export function numberText(value: number): string {
  return value === Number.POSITIVE_INFINITY ? '+Inf' : value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

function linesOf(family: MetricFamily, form: TextForm): string {
  if (family.type === 'histogram') return histogramLines(family, form)
  return family.type === 'summary' ? summaryLines(family, form) : valueLines(family, form)
}

const braced = (labels: string) => (labels === '' ? '' : `{${labels}}`)
/** Labels that another one follows. */
const opened = (labels: string) => (labels === '' ? '{' : `{${labels},`)

function valueLines({ name, samples }: ValueFamily, form: TextForm): string {
  let text = ''
  for (const { labels, value, atMs } of samples) text += `${name}${braced(labels)} ${form.number(value)}${atMs === undefined ? '' : ` ${form.time(atMs)}`}\n`
  return text
}

function histogramLines({ name, bounds, samples }: HistogramFamily, form: TextForm): string {
  const ends = [...bounds, Number.POSITIVE_INFINITY].map((bound) => `${labelPair('le', form.number(bound))}} `)
  let text = ''
  for (const { labels, counts, sum, exemplars } of samples) {
    const begin = `${name}_bucket${opened(labels)}`
    let total = 0
    for (let at = 0; at < ends.length; at++) {
      total += counts[at] ?? 0
      const exemplar = exemplars?.[at]
      text += `${begin}${ends[at]}${total}${exemplar && form.exemplar ? form.exemplar(exemplar) : ''}\n`
    }
    text += `${name}_sum${braced(labels)} ${form.number(sum)}\n${name}_count${braced(labels)} ${total}\n`
  }
  return text
}

function summaryLines({ name, samples }: SummaryFamily, form: TextForm): string {
  let text = ''
  for (const { labels, count, sum, quantiles = [] } of samples) {
    for (const { quantile, value } of quantiles) text += `${name}${opened(labels)}${labelPair('quantile', form.number(quantile))}} ${form.number(value)}\n`
    text += `${name}_sum${braced(labels)} ${form.number(sum)}\n${name}_count${braced(labels)} ${count}\n`
  }
  return text
}
