/**
 * Metrics as Prometheus scrapes them (L5). Each process has its own: nothing global. A recording is an addition to a cell; a scrape reads the cells, and
 * writes them in the format that it asks for.
 * Upstream: k8s.io/component-base/metrics over client_golang.
 */
import { type Exemplar, labelsText, type MetricFamily } from '#base/metricFamily'
import { type Labels, type MetricOptions, type Metrics, noMetrics, type ObservedTrace } from '#base/metrics'
import { prometheusText } from '#base/prometheusText'
import { kubernetesMinor } from '#base/version'

export interface PrometheusMetrics extends Metrics {
  /** The families that are shown, for one scrape: their samples are those of the time at which they are read. */
  families(): readonly MetricFamily[]
  /** The text of Prometheus' exposition format 0.0.4. */
  render(): string
  readonly contentType: string
  /** Calls `refresh` before every scrape: metrics that are read, and not recorded. */
  onScrape(refresh: () => void): void
  /** The metrics that exist by name, with samples or without. */
  readonly registered: ReadonlyMap<string, Pick<Family, 'options' | 'type'>>
  /**
   * Names the stability of metrics in their help, and counts them by it; before, help texts name none. A metric that is not in the list is ALPHA, as
   * upstream has it.
   */
  describe(documented: ReadonlyMap<string, MetricStability>): void
  readonly isDescribed: boolean
  /** Sets the rules of this process, once its flags are read. */
  restrict(rules: MetricRules): void
}

/** What the flags of a component say about its metrics. */
export interface MetricRules {
  /** Metrics that are neither counted nor rendered, by their whole names. */
  readonly disabled?: readonly string[] | undefined
  /** Shows metrics whose deprecation period is over. */
  readonly showHidden?: boolean | undefined
  /** Metric → label → the values it may have; others become `unexpected`. */
  readonly allowedLabels?: AllowedLabels | undefined
  /** More families, made of those that are shown. */
  readonly extend?: ((families: readonly MetricFamily[]) => readonly MetricFamily[]) | undefined
}

export type AllowedLabels = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>

/** How stable a metric is, and since which version it is deprecated. */
export interface MetricStability {
  readonly stability: 'STABLE' | 'BETA'
  readonly deprecatedVersion?: string | undefined
}

/** One metric name with its series. */
interface Family {
  readonly options: MetricOptions
  readonly type: MetricFamily['type']
  /** The samples, under this help. */
  shown(help: string): MetricFamily
}

/** client_golang's DefBuckets. */
const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const noLabels: Labels = {}
/** A metric keeps no more series: labels whose values clients choose must not fill the memory. */
const mostSeries = 20_000

/** @param given as `describe` takes it; absent: not yet */
export function createPrometheusMetrics(given?: ReadonlyMap<string, MetricStability>): PrometheusMetrics {
  const families = new Map<string, Family>()
  let off: ReadonlySet<string> = new Set()
  let rules: MetricRules = {}
  let documented: ReadonlyMap<string, MetricStability> | undefined
  let meta: ReturnType<typeof metaMetrics> | undefined
  let unexpected = 0
  const refreshes: (() => void)[] = []
  const constrain = labelConstraint(
    () => rules.allowedLabels,
    () => {
      unexpected++
      meta?.unexpected.inc()
    },
  )
  const dropped = (metric: string) => metrics.counter(droppedSeries).inc({ metric })
  const once = <F extends Family>(options: MetricOptions, make: (limits: SeriesLimits) => F): F => {
    const found = families.get(options.name) as F | undefined
    if (found) return found
    const made = make({ constrain: (labels) => constrain(options.name, labels), dropped: () => dropped(options.name) })
    families.set(options.name, made)
    meta?.count(options.name)
    return made
  }
  const orNothing =
    <O extends MetricOptions, M>(made: (options: O) => M, nothing: (options: O) => M) =>
    (options: O) =>
      (off.has(options.name) ? nothing : made)(options)
  const metrics: PrometheusMetrics = {
    counter: orNothing((options) => once(options, (limits) => counterFamily(options, limits)), noMetrics.counter),
    gauge: orNothing((options) => once(options, (limits) => gaugeFamily(options, limits)), noMetrics.gauge),
    histogram: orNothing((options) => once(options, (limits) => histogramFamily(options, options.buckets ?? defaultBuckets, limits)), noMetrics.histogram),
    summary: orNothing((options) => once(options, (limits) => summaryFamily(options, limits)), noMetrics.summary),
    registered: families,
    get isDescribed() {
      return documented !== undefined
    },
    describe(list) {
      documented = list
      const names = [...families.keys()]
      meta = metaMetrics(metrics, stabilityOf)
      for (const name of names) meta.count(name)
      meta.unexpected.inc({}, unexpected)
      meta.disabled(off.size)
    },
    restrict(wanted) {
      rules = wanted
      off = new Set(wanted.disabled)
      // A part that is older than the flags may have asked for one.
      for (const name of off) families.delete(name)
      meta?.disabled(off.size)
    },
    families() {
      for (const refresh of refreshes) refresh()
      const shown = [...families.values()].filter(isShown).map((family) => family.shown(helpOf(family.options.help, stabilityOf(family.options.name))))
      return rules.extend ? [...shown, ...rules.extend(shown)] : shown
    },
    render: () => prometheusText(metrics.families()),
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    onScrape: (refresh) => void refreshes.push(refresh),
  }
  const stabilityOf = (name: string) => (documented && isOfKubernetes(name) ? (documented.get(name) ?? alpha) : undefined)
  const isShown = ({ options }: Family) => (rules.showHidden ?? false) || !isHidden(stabilityOf(options.name))
  if (given) metrics.describe(given)
  return metrics
}

const alpha = { stability: 'ALPHA', deprecatedVersion: undefined } as const
type Stability = MetricStability | typeof alpha

const droppedSeries = {
  name: 'skiff_metric_series_dropped_total',
  help: `Recordings with new labels that a metric of ${mostSeries} series did not take.`,
  labels: ['metric'],
}

/** Those of the process, of its runtime and of Skiff alone have no stability. */
function isOfKubernetes(name: string): boolean {
  return !/^(process|nodejs|skiff)_/.test(name)
}

function helpOf(help: string, of: Stability | undefined): string {
  if (!of) return help
  return `[${of.stability}] ${of.deprecatedVersion === undefined ? '' : `(Deprecated since ${of.deprecatedVersion}) `}${help}`
}

/** Minor versions for which a deprecated metric is still shown. Upstream: shouldHide of component-base/metrics/registry.go. */
const shownFor = { STABLE: 3, BETA: 1, ALPHA: 0 }

function isHidden(of: Stability | undefined): boolean {
  if (of?.deprecatedVersion === undefined) return false
  return Number(of.deprecatedVersion.split('.')[1]) + shownFor[of.stability] <= Number(kubernetesMinor)
}

/** Counts the metrics themselves. Upstream: component-base/metrics/registry.go and options.go. */
function metaMetrics(metrics: Metrics, stabilityOf: (name: string) => Stability | undefined) {
  const registered = metrics.counter({
    name: 'registered_metrics_total',
    help: 'Metrics that are registered, by stability and the version that deprecated them.',
    labels: ['stability_level', 'deprecated_version'],
  })
  const hidden = metrics.counter({ name: 'hidden_metrics_total', help: 'Metrics that are hidden.' })
  const disabled = metrics.counter({ name: 'disabled_metrics_total', help: 'Metrics that are turned off.' })
  const unexpected = metrics.counter({
    name: 'cardinality_enforcement_unexpected_categorizations_total',
    help: "Values of labels outside of the metric's allow list.",
  })
  return {
    unexpected,
    disabled: (count: number) => disabled.inc({}, count),
    count(name: string) {
      const of = stabilityOf(name)
      if (isHidden(of)) hidden.inc()
      else if (of) registered.inc({ stability_level: of.stability, deprecated_version: of.deprecatedVersion ?? '' })
    },
  }
}

function labelConstraint(allowed: () => AllowedLabels | undefined, onUnexpected: () => void) {
  return (metric: string, labels: Labels): Labels => {
    const lists = allowed()?.get(metric)
    if (!lists) return labels
    const isUnexpected = ([name, value]: [string, string | number]) => !(lists.get(name)?.has(String(value)) ?? true)
    const others = Object.entries(labels).filter(isUnexpected)
    for (const _ of others) onUnexpected()
    return { ...labels, ...Object.fromEntries(others.map(([name]) => [name, 'unexpected'])) }
  }
}

interface SeriesLimits {
  /** The labels as they are recorded. */
  constrain(labels: Labels): Labels
  /** A recording did not find room. */
  dropped(): void
}

interface Cell {
  readonly labels: string
  value: number
}

const newCell = (labels: string): Cell => ({ labels, value: 0 })

/** The series of one metric by their labels' values: each a cell that is its sample, too. */
class SeriesTable<C> {
  readonly #names: readonly string[]
  readonly #make: (labels: string) => C
  readonly #limits: SeriesLimits
  readonly #cells = new Map<string, C>()

  constructor(names: readonly string[] = [], make: (labels: string) => C, limits: SeriesLimits) {
    this.#names = names
    this.#make = make
    this.#limits = limits
    // A metric without labels is shown before its first recording.
    if (names.length === 0) this.cell(noLabels)
  }

  cell(given: Labels): C {
    const labels = this.#limits.constrain(given)
    const key = this.#keyOf(labels)
    const found = this.#cells.get(key)
    if (found) return found
    if (this.#cells.size >= mostSeries) {
      this.#limits.dropped()
      return this.#make('')
    }
    const named = this.#names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]] as const]))
    const made = this.#make(labelsText(Object.fromEntries(named)))
    this.#cells.set(key, made)
    return made
  }

  remove(labels: Labels): void {
    this.#cells.delete(this.#keyOf(labels))
  }

  cells(): readonly C[] {
    return [...this.#cells.values()]
  }

  #keyOf(labels: Labels): string {
    let key = ''
    for (const name of this.#names) key += `${labels[name] ?? ''}\n`
    return key
  }
}

function counterFamily(options: MetricOptions, limits: SeriesLimits) {
  const table = new SeriesTable<Cell>(options.labels, newCell, limits)
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
    shown: (help: string): MetricFamily => ({ name: options.name, type: 'counter', help, samples: table.cells() }),
  }
}

function gaugeFamily(options: MetricOptions, limits: SeriesLimits) {
  const table = new SeriesTable<Cell>(options.labels, newCell, limits)
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
    shown: (help: string): MetricFamily => ({ name: options.name, type: 'gauge', help, samples: table.cells() }),
  }
}

interface HistogramCell {
  readonly labels: string
  /** Observations by bucket, not yet summed up; the last one is above all bounds. */
  readonly counts: number[]
  sum: number
  /** By bucket; absent: no observation was traced. */
  exemplars: (Exemplar | undefined)[] | undefined
}

function histogramFamily(options: MetricOptions, bounds: readonly number[], limits: SeriesLimits) {
  const make = (labels: string): HistogramCell => ({ labels, counts: new Array(bounds.length + 1).fill(0), sum: 0, exemplars: undefined })
  const table = new SeriesTable<HistogramCell>(options.labels, make, limits)
  const observe = (cell: HistogramCell, value: number, weight = 1, trace?: ObservedTrace) => {
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
    cell.counts[bucket] = (cell.counts[bucket] as number) + weight
    cell.sum += value * weight
    if (!trace) return
    cell.exemplars ??= new Array(bounds.length + 1).fill(undefined)
    cell.exemplars[bucket] = { traceId: trace.traceId, spanId: trace.spanId, value, atMs: trace.atMs }
  }
  return {
    options,
    type: 'histogram' as const,
    observe: (value: number, labels: Labels = noLabels) => observe(table.cell(labels), value),
    series(labels: Labels) {
      const cell = table.cell(labels)
      return { observe: (value: number, weight?: number, trace?: ObservedTrace) => observe(cell, value, weight, trace) }
    },
    shown: (help: string): MetricFamily => ({ name: options.name, type: 'histogram', help, bounds, samples: table.cells() }),
  }
}

function summaryFamily(options: MetricOptions, limits: SeriesLimits) {
  const table = new SeriesTable(options.labels, (labels) => ({ labels, count: 0, sum: 0 }), limits)
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
    shown: (help: string): MetricFamily => ({ name: options.name, type: 'summary', help, samples: table.cells() }),
  }
}
