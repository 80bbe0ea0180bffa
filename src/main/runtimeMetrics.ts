/**
 * The nodejs_* metrics of this process (L5): delays of the event loop, pauses of the garbage collector, what keeps the process alive, and the heap. Names,
 * labels and buckets are those of prom-client's default metrics, which dashboards for Node.js expect. Delays and pauses are measured from the first scrape
 * on: a process that is not scraped has no cost. Delays are those since the scrape before, as with prom-client.
 */
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import type { PrometheusMetrics } from './prometheus.ts'

const { versions, version } = process
const gcBuckets = [0.001, 0.01, 0.1, 1, 2, 5]

/** By the number that V8 gives a collection. */
const gcKinds: ReadonlyMap<number, string> = new Map([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
])

/** What keeps the process alive, by the names of its types. */
export interface ActiveTypes {
  resources(): readonly string[]
  handles(): readonly string[]
  requests(): readonly string[]
}

/** Adds the metrics of the runtime to those that every scrape reads. */
export function addRuntimeMetrics(metrics: PrometheusMetrics, active: ActiveTypes = ofProcess): void {
  const [major = '', minor = '', patch = ''] = versions.node.split('.')
  metrics
    .gauge({ name: 'nodejs_version_info', help: 'The version of Node.js.', labels: ['version', 'major', 'minor', 'patch'] })
    .set(1, { version, major, minor, patch })
  const refreshCounts = activeCounts(metrics, active)
  let refreshDelays: (() => void) | undefined
  metrics.onScrape(() => {
    refreshDelays ??= startMeasuring(metrics)
    refreshDelays()
    refreshHeap(metrics)
    refreshCounts()
  })
}

/** Node's entry of a collection; its types leave the detail out. */
interface GcEntry {
  readonly duration: number
  readonly detail?: { readonly kind?: number }
}

/** @returns sets the metrics of the event loop */
function startMeasuring(metrics: PrometheusMetrics): () => void {
  const seconds = metrics.histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'How long garbage collections took, in seconds, by kind: major, minor, incremental or weakcb.',
    labels: ['kind'],
    buckets: gcBuckets,
  })
  new PerformanceObserver((list) => {
    for (const { duration, detail } of list.getEntries() as readonly GcEntry[]) {
      const kind = gcKinds.get(detail?.kind ?? 0)
      if (kind !== undefined) seconds.observe(duration / 1000, { kind })
    }
  }).observe({ entryTypes: ['gc'] })
  return eventLoopDelays(metrics)
}

function eventLoopDelays(metrics: PrometheusMetrics): () => void {
  const delays = monitorEventLoopDelay()
  delays.enable()
  const now = metrics.gauge({ name: 'nodejs_eventloop_lag_seconds', help: 'How late the event loop was at the last scrape, in seconds.' })
  const gauges = (
    [
      ['min', 'The shortest delay of the event loop since the last scrape, in seconds.', () => delays.min],
      ['max', 'The longest delay of the event loop since the last scrape, in seconds.', () => delays.max],
      ['mean', 'The mean delay of the event loop since the last scrape, in seconds.', () => delays.mean],
      ['stddev', 'The standard deviation of the delays of the event loop since the last scrape, in seconds.', () => delays.stddev],
      ['p50', 'The median delay of the event loop since the last scrape, in seconds.', () => delays.percentile(50)],
      ['p90', '90 % of the delays of the event loop since the last scrape were shorter, in seconds.', () => delays.percentile(90)],
      ['p99', '99 % of the delays of the event loop since the last scrape were shorter, in seconds.', () => delays.percentile(99)],
    ] as const
  ).map(([name, help, nanoseconds]) => ({ gauge: metrics.gauge({ name: `nodejs_eventloop_lag_${name}_seconds`, help }), nanoseconds }))
  return () => {
    const startedMs = performance.now()
    setImmediate(() => now.set((performance.now() - startedMs) / 1000)).unref()
    // Without a measurement the least is the largest number, and the mean is NaN.
    if (delays.count === 0) return
    for (const { gauge, nanoseconds } of gauges) gauge.set(nanoseconds() / 1e9)
    delays.reset()
  }
}

function refreshHeap(metrics: PrometheusMetrics): void {
  const { heapTotal, heapUsed, external } = process.memoryUsage()
  metrics.gauge({ name: 'nodejs_heap_size_total_bytes', help: 'The size of the heap, in bytes.' }).set(heapTotal)
  metrics.gauge({ name: 'nodejs_heap_size_used_bytes', help: 'Bytes in use in the heap.' }).set(heapUsed)
  metrics.gauge({ name: 'nodejs_external_memory_bytes', help: 'Bytes outside of the heap that objects in it hold.' }).set(external)
  const labels = ['space']
  const total = metrics.gauge({ name: 'nodejs_heap_space_size_total_bytes', help: 'The size of a space of the heap, in bytes.', labels })
  const used = metrics.gauge({ name: 'nodejs_heap_space_size_used_bytes', help: 'Bytes in use in a space of the heap.', labels })
  const available = metrics.gauge({ name: 'nodejs_heap_space_size_available_bytes', help: 'Bytes that are free in a space of the heap.', labels })
  for (const one of getHeapSpaceStatistics()) {
    const space = { space: one.space_name.replace(/_space$/, '') }
    total.set(one.space_size, space)
    used.set(one.space_used_size, space)
    available.set(one.space_available_size, space)
  }
}

/** Node's lists of what keeps the process alive, apart from timers. No public function has them; prom-client reads them, too. */
interface ActiveLists {
  _getActiveHandles?(): readonly object[]
  _getActiveRequests?(): readonly object[]
}

const lists = process as unknown as ActiveLists
const namesOf = (list: readonly object[] | undefined) => list?.map((one) => one.constructor?.name ?? 'Object') ?? []
const ofProcess: ActiveTypes = {
  resources: () => process.getActiveResourcesInfo(),
  handles: () => namesOf(lists._getActiveHandles?.()),
  requests: () => namesOf(lists._getActiveRequests?.()),
}

/** @returns sets the numbers of what keeps the process alive */
function activeCounts(metrics: PrometheusMetrics, active: ActiveTypes): () => void {
  const resources = countByType(metrics, 'resources', 'What keeps the event loop alive')
  const handles = countByType(metrics, 'handles', 'Handles that are active, such as sockets and child processes')
  const requests = countByType(metrics, 'requests', 'Requests to the system that are under way')
  return () => {
    resources(active.resources())
    handles(active.handles())
    requests(active.requests())
  }
}

function countByType(metrics: PrometheusMetrics, what: string, help: string): (types: readonly string[]) => void {
  const total = metrics.gauge({ name: `nodejs_active_${what}_total`, help: `${help}.` })
  const byType = metrics.gauge({ name: `nodejs_active_${what}`, help: `${help}, by type.`, labels: ['type'] })
  let shown = new Map<string, number>()
  return (types) => {
    const counts = new Map<string, number>()
    for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1)
    for (const type of shown.keys()) if (!counts.has(type)) byType.remove({ type })
    for (const [type, count] of counts) byType.set(count, { type })
    total.set(types.length)
    shown = counts
  }
}
