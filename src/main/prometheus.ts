/**
 * Metrics and their text in Prometheus' exposition format 0.0.4 (L5). Each process has its own: nothing global. A recording is an addition to
 * a cell; text is rendered only at a scrape.
 * Upstream: k8s.io/component-base/metrics over client_golang.
 */
import { type Labels, type MetricOptions, type Metrics, noMetrics } from '#base/metrics'
import { familyText, labelPair, numberText, sampleLine } from '#base/prometheusText'

export interface PrometheusMetrics extends Metrics {
  /** The exposition text. */
  render(): string
  readonly contentType: string
}

/** One metric name with its series. */
interface Family {
  readonly options: MetricOptions
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  lines(): Iterable<string>
}

/** client_golang's DefBuckets. */
const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const noLabels: Labels = {}

/** @param disabled names of metrics that are neither counted nor rendered */
export function createPrometheusMetrics(disabled: readonly string[] = []): PrometheusMetrics {
  const families = new Map<string, Family>()
  const once = <F extends Family>(options: MetricOptions, make: () => F): F => {
    const found = families.get(options.name) as F | undefined
    if (found) return found
    const made = make()
    families.set(options.name, made)
    return made
  }
  const off = new Set(disabled)
  const orNothing =
    <O extends MetricOptions, M>(made: (options: O) => M, nothing: (options: O) => M) =>
    (options: O) =>
      (off.has(options.name) ? nothing : made)(options)
  return {
    counter: orNothing((options) => once(options, () => counterFamily(options)), noMetrics.counter),
    gauge: orNothing((options) => once(options, () => gaugeFamily(options)), noMetrics.gauge),
    histogram: orNothing((options) => once(options, () => histogramFamily(options, options.buckets ?? defaultBuckets)), noMetrics.histogram),
    summary: orNothing((options) => once(options, () => summaryFamily(options)), noMetrics.summary),
    render: () => [...families.values()].map(({ options, type, lines }) => familyText({ ...options, type }, [...lines()])).join(''),
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
  }
}

interface Cell {
  value: number
}

/** The series of one metric by their labels' values. */
class SeriesTable<C> {
  readonly #names: readonly string[]
  readonly #make: () => C
  readonly #cells = new Map<string, { readonly cell: C; readonly labels: readonly string[] }>()

  constructor(names: readonly string[] = [], make: () => C) {
    this.#names = names
    this.#make = make
  }

  cell(labels: Labels): C {
    const key = this.#keyOf(labels)
    let series = this.#cells.get(key)
    if (!series) {
      series = { cell: this.#make(), labels: this.#names.flatMap((name) => (labels[name] === undefined ? [] : [labelPair(name, labels[name])])) }
      this.#cells.set(key, series)
    }
    return series.cell
  }

  remove(labels: Labels): void {
    this.#cells.delete(this.#keyOf(labels))
  }

  entries(): Iterable<{ readonly cell: C; readonly labels: readonly string[] }> {
    return this.#cells.values()
  }

  #keyOf(labels: Labels): string {
    let key = ''
    for (const name of this.#names) key += `${labels[name] ?? ''}\n`
    return key
  }
}

function counterFamily(options: MetricOptions) {
  const table = new SeriesTable<Cell>(options.labels, () => ({ value: 0 }))
  return {
    options,
    type: 'counter' as const,
    inc(labels: Labels = noLabels, by = 1) {
      table.cell(labels).value += by
    },
    series(labels: Labels) {
      const cell = table.cell(labels)
      return {
        inc(by = 1) {
          cell.value += by
        },
      }
    },
    lines: () => valueLines(options.name, table),
  }
}

function gaugeFamily(options: MetricOptions) {
  const table = new SeriesTable<Cell>(options.labels, () => ({ value: 0 }))
  return {
    options,
    type: 'gauge' as const,
    set(value: number, labels: Labels = noLabels) {
      table.cell(labels).value = value
    },
    inc(labels: Labels = noLabels, by = 1) {
      table.cell(labels).value += by
    },
    dec(labels: Labels = noLabels, by = 1) {
      table.cell(labels).value -= by
    },
    remove: (labels: Labels) => table.remove(labels),
    series(labels: Labels) {
      const cell = table.cell(labels)
      return {
        set(value: number) {
          cell.value = value
        },
        add(by: number) {
          cell.value += by
        },
      }
    },
    lines: () => valueLines(options.name, table),
  }
}

function* valueLines(name: string, table: SeriesTable<Cell>): Iterable<string> {
  for (const { cell, labels } of table.entries()) yield sampleLine(name, labels, cell.value)
}

interface HistogramCell {
  /** Observations by bucket, not yet summed up; the last one is above all bounds. */
  readonly counts: number[]
  sum: number
}

function histogramFamily(options: MetricOptions, bounds: readonly number[]) {
  const table = new SeriesTable<HistogramCell>(options.labels, () => ({ counts: new Array(bounds.length + 1).fill(0), sum: 0 }))
  const observe = (cell: HistogramCell, value: number, weight = 1) => {
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
    cell.counts[bucket] = (cell.counts[bucket] as number) + weight
    cell.sum += value * weight
  }
  return {
    options,
    type: 'histogram' as const,
    observe: (value: number, labels: Labels = noLabels) => observe(table.cell(labels), value),
    series(labels: Labels) {
      const cell = table.cell(labels)
      return { observe: (value: number, weight?: number) => observe(cell, value, weight) }
    },
    *lines() {
      for (const { cell, labels } of table.entries()) {
        let total = 0
        for (const [at, count] of cell.counts.entries()) {
          total += count
          yield sampleLine(`${options.name}_bucket`, [...labels, labelPair('le', numberText(bounds[at] ?? Number.POSITIVE_INFINITY))], total)
        }
        yield sampleLine(`${options.name}_sum`, labels, cell.sum)
        yield sampleLine(`${options.name}_count`, labels, total)
      }
    },
  }
}

function summaryFamily(options: MetricOptions) {
  const table = new SeriesTable(options.labels, () => ({ count: 0, sum: 0 }))
  const observe = (cell: { count: number; sum: number }, value: number) => {
    cell.count++
    cell.sum += value
  }
  return {
    options,
    type: 'summary' as const,
    observe: (value: number, labels: Labels = noLabels) => observe(table.cell(labels), value),
    series(labels: Labels) {
      const cell = table.cell(labels)
      return { observe: (value: number) => observe(cell, value) }
    },
    *lines() {
      for (const { cell, labels } of table.entries()) {
        yield sampleLine(`${options.name}_sum`, labels, cell.sum)
        yield sampleLine(`${options.name}_count`, labels, cell.count)
      }
    },
  }
}
