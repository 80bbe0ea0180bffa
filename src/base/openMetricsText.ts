/**
 * Metric families as OpenMetrics 1.0.0 (L0, pure): counters are named without `_total`, units have a line, numbers of float type a point, and buckets show
 * the trace of an observation. As upstream's promhttp, it writes no `_created`.
 * Upstream: prometheus/common expfmt/openmetrics_create.go.
 */
import { type Exemplar, escaped, labelsText, type MetricFamily } from './metricFamily.ts'
import { familyText, numberText, type TextForm } from './prometheusText.ts'

/** All families and the line that ends them. */
export function openMetricsText(families: Iterable<MetricFamily>): string {
  let text = ''
  for (const family of families) text += familyText(family, form)
  return `${text}# EOF\n`
}

const form: TextForm = { head, number: floatText, time: secondsText, exemplar }
const total = '_total'
/** The base units whose names Prometheus appends to those of metrics. */
const units = ['seconds', 'bytes', 'ratio', 'meters', 'volts', 'amperes', 'joules', 'grams', 'celsius']

function head({ name, type, help }: MetricFamily): string {
  const isTotal = type === 'counter' && name.endsWith(total)
  const family = isTotal ? name.slice(0, -total.length) : name
  const unit = units.find((one) => family.endsWith(`_${one}`))
  const lines = [`# HELP ${family} ${escaped(help).replaceAll('"', '\\"')}`, `# TYPE ${family} ${type === 'counter' && !isTotal ? 'unknown' : type}`]
  return `${[...lines, ...(unit === undefined ? [] : [`# UNIT ${family} ${unit}`])].join('\n')}\n`
}

function floatText(value: number): string {
  const text = numberText(value)
  return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text
}

function secondsText(atMs: number): string {
  return floatText(atMs / 1000)
}

function exemplar({ traceId, spanId, value, atMs }: Exemplar): string {
  return ` # {${labelsText({ trace_id: traceId, span_id: spanId })}} ${floatText(value)} ${secondsText(atMs)}`
}
