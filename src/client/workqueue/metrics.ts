/**
 * Metrics of a work queue (L2), with upstream's names and buckets. Upstream: client-go/util/workqueue/metrics.go,
 * component-base/metrics/prometheus/workqueue (v1.36).
 */
import type { Clock } from '#base/clock'
import { type Metrics, noMetrics } from '#base/metrics'

export interface QueueMetrics<T> {
  added(item: T): void
  /** @returns how long it waited; undefined: not measured */
  taken(item: T): number | undefined
  done(item: T): void
  retried(): void
  stop(): void
}

/** 10 ns, 100 ns, … 1000 s. */
const buckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000]
const refreshMs = 500

export function createQueueMetrics<T>(metrics: Metrics, name: string, clock: Clock): QueueMetrics<T> {
  if (metrics === noMetrics || name === '') return { added() {}, taken: () => undefined, done() {}, retried() {}, stop() {} }
  const gauge = (suffix: string, help: string) => metrics.gauge({ name: `workqueue_${suffix}`, help, labels: ['name'] })
  const counter = (suffix: string, help: string) => metrics.counter({ name: `workqueue_${suffix}`, help, labels: ['name'] })
  const histogram = (suffix: string, help: string) => metrics.histogram({ name: `workqueue_${suffix}`, help, labels: ['name'], buckets })
  const depth = gauge('depth', 'Items waiting in the queue')
  const adds = counter('adds_total', 'Items added to the queue')
  const latency = histogram('queue_duration_seconds', 'Seconds an item waited in the queue before it was taken')
  const work = histogram('work_duration_seconds', 'Seconds of work on an item of the queue')
  const retries = counter('retries_total', 'Items added again after a wait')
  const unfinished = gauge('unfinished_work_seconds', 'Seconds of work in progress, not yet in work_duration; large values point at stuck workers')
  const longest = gauge('longest_running_processor_seconds', 'Seconds that the longest running worker of the queue has been at its item')
  const labels = { name }
  const addedMs = new Map<T, number>()
  const startedMs = new Map<T, number>()
  for (const metric of [depth, unfinished, longest]) metric.set(0, labels)

  function refresh(): void {
    const nowMs = clock.monotonicMs()
    let total = 0
    let oldest = 0
    for (const started of startedMs.values()) {
      const seconds = (nowMs - started) / 1000
      total += seconds
      oldest = Math.max(oldest, seconds)
    }
    unfinished.set(total, labels)
    longest.set(oldest, labels)
    // Armed only while items are in process: an idle queue has no timer.
    timer = startedMs.size > 0 ? clock.timer(refreshMs, refresh) : undefined
  }
  let timer: ReturnType<Clock['timer']> | undefined

  return {
    added: (item) => {
      adds.inc(labels)
      depth.inc(labels)
      if (!addedMs.has(item)) addedMs.set(item, clock.monotonicMs())
    },
    taken: (item) => {
      const nowMs = clock.monotonicMs()
      depth.dec(labels)
      const waitedMs = nowMs - (addedMs.get(item) ?? nowMs)
      latency.observe(waitedMs / 1000, labels)
      addedMs.delete(item)
      startedMs.set(item, nowMs)
      timer ??= clock.timer(refreshMs, refresh)
      return waitedMs
    },
    done: (item) => {
      const nowMs = clock.monotonicMs()
      work.observe((nowMs - (startedMs.get(item) ?? nowMs)) / 1000, labels)
      startedMs.delete(item)
    },
    retried: () => retries.inc(labels),
    stop: () => timer?.cancel(),
  }
}
