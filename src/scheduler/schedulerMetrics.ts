/** The scheduler's metrics under upstream's names (L3). Upstream: pkg/scheduler/metrics/metrics.go (v1.36). */
import { exponentialBuckets, type GaugeSeries, type Metrics } from '#base/metrics'
import type { BatchMetrics } from './opportunisticBatch.ts'
import type { CyclePoint, CycleTimer } from './schedulePod.ts'
import type { PluginObserver } from './timedProfile.ts'

export type PointStatus = 'Success' | 'Error' | 'Unschedulable' | 'UnschedulableAndUnresolvable' | 'Pending' | 'Skip'

export interface SchedulerMetrics {
  attempt(result: 'scheduled' | 'unschedulable' | 'error', profile: string, seconds: number): void
  /** A pod entered a queue, because of an event. */
  incoming(queue: 'active' | 'backoff' | 'unschedulable' | 'gated', event: string): void
  /** `wasFlushed`: it had waited until the limit, and no event had brought it back. */
  scheduled(secondsSinceFirstSeen: number, attempts: number, wasFlushed: boolean): void
  /** An event was taken in: cache and queue know. */
  handled(event: string, seconds: number): void
  /** Events kept for pods in flight. */
  kept(event: string, by: number): void
  hint(plugin: string, event: string, hint: string, seconds: number): void
  plugin: PluginObserver
  pending(counts: Readonly<Record<'active' | 'backoff' | 'unschedulable' | 'gated', number>>): void
  /** Plugins because of which pods wait, by how many: `by` 1 or -1. */
  unschedulable(plugin: string, profile: string, by: 1 | -1): void
  algorithm(seconds: number): void
  point(point: CyclePoint, profile: string, status: PointStatus, seconds: number): void
  permitWait(result: 'allowed' | 'rejected', seconds: number): void
  cacheSize(nodes: number, pods: number, assumedPods: number): void
  /** Bindings that began (1) or ended (-1): upstream runs a goroutine for each. */
  binding(by: 1 | -1): void
  /** Rankings of nodes that are reused in a profile. */
  batch(profile: string): BatchMetrics
  /** Times the points of one decision. */
  timer(profile: string): CycleTimer
}

/** @param nowMs a time that never goes back */
export function createSchedulerMetrics(metrics: Metrics, nowMs: () => number): SchedulerMetrics {
  const counters = countersOf(metrics)
  const histograms = histogramsOf(metrics)
  const batches = batchFamilies(metrics)
  const { pending, unschedulable, cache, binding, kept } = gaugesOf(metrics)
  const points = seriesOf((extension_point, profile, status) => histograms.point.series({ extension_point, status, profile }))
  const point: SchedulerMetrics['point'] = (name, profile, status, seconds) => points(name, profile, status).observe(seconds)
  // What every cycle records a dozen times: found by the point alone.
  const successes = seriesOf((profile) => seriesOf((extension_point) => histograms.point.series({ extension_point, status: 'Success', profile })))
  const evaluations = seriesOf((extension_point, plugin, profile) => counters.evaluations.series({ plugin, extension_point, profile }))
  const executions = seriesOf((plugin, extension_point, status) => histograms.plugin.series({ plugin, extension_point, status }))
  const keptEvents = seriesOf((event) => kept.series({ event }))
  const results = seriesOf((result, profile) => ({
    count: counters.attempts.series({ result, profile }),
    seconds: histograms.attempt.series({ result, profile }),
  }))
  const sli = seriesOf((attempts) => histograms.sli.series({ attempts }))
  const tries = histograms.tries.series({})
  const algorithm = histograms.algorithm.series({})
  const handling = seriesOf((event) => histograms.handling.series({ event }))
  const incoming = seriesOf((queue, event) => counters.incoming.series({ queue, event }))
  const waiting = queues.map((queue) => ({ queue, series: pending.series({ queue }) }))
  const [nodes, pods, assumedPods] = ['nodes', 'pods', 'assumed_pods'].map((type) => cache.series({ type })) as [GaugeSeries, GaugeSeries, GaugeSeries]
  return {
    incoming: (queue, event) => incoming(queue, event).inc(),
    attempt: (result, profile, seconds) => {
      const series = results(result, profile)
      series.count.inc()
      series.seconds.observe(seconds)
    },
    scheduled: (seconds, count, wasFlushed) => {
      if (wasFlushed) counters.afterFlush.inc()
      sli(count > 15 ? '16+' : String(count)).observe(seconds)
      tries.observe(count)
    },
    pending: (counts) => {
      for (const { queue, series } of waiting) series.set(counts[queue])
    },
    unschedulable: (plugin, profile, by) => unschedulable.inc({ plugin, profile }, by),
    algorithm: (seconds) => algorithm.observe(seconds),
    point,
    handled: (event, seconds) => handling(event).observe(seconds),
    kept: (event, by) => keptEvents(event).add(by),
    hint: (plugin, event, hint, seconds) => histograms.hint.observe(seconds, { plugin, event, hint }),
    plugin: (plugin, point, status, seconds) => executions(plugin, point, status).observe(seconds),
    permitWait: (result, seconds) => histograms.permitWait.observe(seconds, { result }),
    cacheSize: (nodeCount, podCount, assumedCount) => {
      nodes.set(nodeCount)
      pods.set(podCount)
      assumedPods.set(assumedCount)
    },
    binding: (by) => binding.add(by),
    batch: (profile) => batchMetrics(batches, profile),
    timer: (profile) => {
      let lastMs = nowMs()
      const succeeded = successes(profile)
      return {
        asked: (point, plugin, times) => evaluations(point, plugin, profile).inc(times),
        done: (name, status) => {
          const now = nowMs()
          const series = status === 'Success' ? succeeded(name) : points(name, profile, status)
          series.observe((now - lastMs) / 1000)
          lastMs = now
        },
      }
    },
  }
}

const queues = ['active', 'backoff', 'unschedulable', 'gated'] as const

/** Finds the series of some labels' values, without making up the labels each time: every decision records a dozen. */
function seriesOf<T>(make: (a: string, b: string, c: string) => T): (a: string, b?: string, c?: string) => T {
  const known = new Map<string, T>()
  return (a, b = '', c = '') => {
    const key = b === '' ? a : `${a}/${b}/${c}`
    let one = known.get(key)
    if (!one) {
      one = make(a, b, c)
      known.set(key, one)
    }
    return one
  }
}

function countersOf(metrics: Metrics) {
  return {
    attempts: metrics.counter({ name: 'scheduler_schedule_attempts_total', help: 'Attempts to schedule pods, by result.', labels: ['result', 'profile'] }),
    evaluations: metrics.counter({
      name: 'scheduler_plugin_evaluation_total',
      help: 'How often plugins were asked and had a say, by extension point: for Filter and Score once for each node.',
      labels: ['plugin', 'extension_point', 'profile'],
    }),
    afterFlush: metrics
      .counter({
        name: 'scheduler_pod_scheduled_after_flush_total',
        help: 'Pods scheduled after the limit of waiting had brought them back: a sign of hints that are wrong.',
      })
      .series({}),
    incoming: metrics.counter({ name: 'scheduler_queue_incoming_pods_total', help: 'Pods that entered a queue, by event.', labels: ['queue', 'event'] }),
  }
}

function batchFamilies(metrics: Metrics) {
  const buckets = exponentialBuckets(0.00001, 2, 12)
  return {
    attempts: metrics.counter({
      name: 'scheduler_batch_attempts_total',
      help: 'Attempts to reuse a ranking of nodes, by result.',
      labels: ['profile', 'result'],
    }),
    flushed: metrics.counter({
      name: 'scheduler_batch_cache_flushed_total',
      help: 'Rankings of nodes that could not be reused, by reason.',
      labels: ['profile', 'reason'],
    }),
    hint: metrics.histogram({
      name: 'scheduler_get_node_hint_duration_seconds',
      help: 'Time to find out whether a ranking can be reused.',
      labels: ['hinted', 'profile'],
      buckets,
    }),
    store: metrics.histogram({
      name: 'scheduler_store_schedule_results_duration_seconds',
      help: 'Time to keep a ranking for the next pod.',
      labels: ['profile'],
      buckets,
    }),
  }
}

function batchMetrics({ attempts, flushed, hint, store }: ReturnType<typeof batchFamilies>, profile: string): BatchMetrics {
  const results = seriesOf((result) => attempts.series({ profile, result }))
  const reasons = seriesOf((reason) => flushed.series({ profile, reason }))
  const hints = seriesOf((hinted) => hint.series({ hinted, profile }))
  const stores = store.series({ profile })
  return {
    attempt: (result) => results(result).inc(),
    flushed: (reason) => reasons(reason).inc(),
    hintTook: (seconds, isHinted) => hints(isHinted ? 'hint' : 'no_hint').observe(seconds),
    storeTook: (seconds) => stores.observe(seconds),
  }
}

function gaugesOf(metrics: Metrics) {
  return {
    kept: metrics.gauge({ name: 'scheduler_inflight_events', help: 'Events kept for the pods that are being tried.', labels: ['event'] }),
    pending: metrics.gauge({ name: 'scheduler_pending_pods', help: 'Waiting pods, by queue.', labels: ['queue'] }),
    unschedulable: metrics.gauge({
      name: 'scheduler_unschedulable_pods',
      help: 'Pods that wait, by each plugin that refused them.',
      labels: ['plugin', 'profile'],
    }),
    binding: metrics
      .gauge({ name: 'scheduler_goroutines', help: 'Running asynchronous operations outside the scheduling decision, by operation.', labels: ['operation'] })
      .series({ operation: 'binding' }),
    cache: metrics.gauge({ name: 'scheduler_cache_size', help: 'Nodes, pods and assumed pods in the cache.', labels: ['type'] }),
  }
}

function histogramsOf(metrics: Metrics) {
  return {
    attempt: metrics.histogram({
      name: 'scheduler_scheduling_attempt_duration_seconds',
      help: 'Time of one attempt, algorithm and binding, by result.',
      labels: ['result', 'profile'],
      buckets: exponentialBuckets(0.001, 2, 15),
    }),
    algorithm: metrics.histogram({
      name: 'scheduler_scheduling_algorithm_duration_seconds',
      help: 'Time of one decision.',
      buckets: exponentialBuckets(0.001, 2, 15),
    }),
    sli: metrics.histogram({
      name: 'scheduler_pod_scheduling_sli_duration_seconds',
      help: 'Time from a pod entering the queue to its binding.',
      labels: ['attempts'],
      buckets: exponentialBuckets(0.01, 2, 20),
    }),
    tries: metrics.histogram({ name: 'scheduler_pod_scheduling_attempts', help: 'Attempts that a scheduled pod needed.', buckets: [1, 2, 4, 8, 16] }),
    point: metrics.histogram({
      name: 'scheduler_framework_extension_point_duration_seconds',
      help: 'Time of all plugins of an extension point.',
      labels: ['extension_point', 'status', 'profile'],
      buckets: exponentialBuckets(0.0001, 2, 12),
    }),
    handling: metrics.histogram({
      name: 'scheduler_event_handling_duration_seconds',
      help: 'Time to take an event in.',
      labels: ['event'],
      buckets: exponentialBuckets(0.0001, 2, 12),
    }),
    plugin: metrics.histogram({
      name: 'scheduler_plugin_execution_duration_seconds',
      help: 'Time of a plugin at an extension point, in some of the cycles, and there of Filter and Score for some of the nodes.',
      labels: ['plugin', 'extension_point', 'status'],
      buckets: exponentialBuckets(0.00001, 1.5, 20),
    }),
    hint: metrics.histogram({
      name: 'scheduler_queueing_hint_execution_duration_seconds',
      help: 'Time of a queueing hint of a plugin, of some.',
      labels: ['plugin', 'event', 'hint'],
      buckets: exponentialBuckets(0.00001, 1.5, 20),
    }),
    permitWait: metrics.histogram({
      name: 'scheduler_permit_wait_duration_seconds',
      help: 'Time that pods waited for permission.',
      labels: ['result'],
      buckets: exponentialBuckets(0.001, 2, 15),
    }),
  }
}
