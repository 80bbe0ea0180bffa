/** The scheduler's metrics under upstream's names (L3). Upstream: pkg/scheduler/metrics/metrics.go. */
import type { Metrics } from '#base/metrics'

export interface SchedulerMetrics {
  attempt(result: 'scheduled' | 'unschedulable' | 'error', profile: string, seconds: number): void
  /** A pod entered a queue, because of an event. */
  incoming(queue: 'active' | 'backoff' | 'unschedulable' | 'gated', event: string): void
  scheduled(secondsSinceFirstSeen: number, attempts: number): void
  pending(counts: Readonly<Record<'active' | 'backoff' | 'unschedulable' | 'gated', number>>): void
}

const durationBuckets = Array.from({ length: 15 }, (_, i) => 0.001 * 2 ** i)

export function createSchedulerMetrics(metrics: Metrics): SchedulerMetrics {
  const attempts = metrics.counter({ name: 'scheduler_schedule_attempts_total', help: 'Attempts to schedule pods, by result.', labels: ['result', 'profile'] })
  const duration = metrics.histogram({
    name: 'scheduler_scheduling_attempt_duration_seconds',
    help: 'Time of one attempt, algorithm and binding, by result.',
    labels: ['result', 'profile'],
    buckets: durationBuckets,
  })
  const sli = metrics.histogram({
    name: 'scheduler_pod_scheduling_sli_duration_seconds',
    help: 'Time from a pod entering the queue to its binding.',
    labels: ['attempts'],
    buckets: Array.from({ length: 20 }, (_, i) => 0.01 * 2 ** i),
  })
  const tries = metrics.histogram({ name: 'scheduler_pod_scheduling_attempts', help: 'Attempts that a scheduled pod needed.', buckets: [1, 2, 4, 8, 16] })
  const pending = metrics.gauge({ name: 'scheduler_pending_pods', help: 'Waiting pods, by queue.', labels: ['queue'] })
  const incoming = metrics.counter({ name: 'scheduler_queue_incoming_pods_total', help: 'Pods that entered a queue, by event.', labels: ['queue', 'event'] })
  return {
    incoming: (queue, event) => incoming.inc({ queue, event }),
    attempt: (result, profile, seconds) => {
      attempts.inc({ result, profile })
      duration.observe(seconds, { result, profile })
    },
    scheduled: (seconds, count) => {
      sli.observe(seconds, { attempts: count > 15 ? '16+' : String(count) })
      tries.observe(count)
    },
    pending: (counts) => {
      for (const queue of ['active', 'backoff', 'unschedulable', 'gated'] as const) pending.set(counts[queue], { queue })
    },
  }
}
