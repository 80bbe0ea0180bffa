import assert from 'node:assert/strict'
import { test } from 'node:test'
import { samplesOf } from './prometheus.ts'
import { queueFamilies, queuesOf } from './queues.ts'

const text = (name: string, depth: number, retries: number, count: number, seconds: number) => `
workqueue_depth{name="${name}"} ${depth}
workqueue_retries_total{name="${name}"} ${retries}
workqueue_work_duration_seconds_sum{name="${name}"} ${seconds}
workqueue_work_duration_seconds_count{name="${name}"} ${count}
workqueue_work_duration_seconds_bucket{name="${name}",le="1"} 99`
const reading = (atMs: number, ...parts: string[]) => ({ atMs, samples: samplesOf(parts.join('\n'), new Set(queueFamilies)) })

test('LRN-05 queues show their rates and averages since the reading before, the busy ones first', () => {
  const before = reading(0, text('job', 0, 0, 10, 1), text('deployment', 0, 2, 20, 4), text('idle', 0, 0, 0, 0))
  const now = reading(2_000, text('job', 0, 0, 10, 1), text('deployment', 3, 6, 30, 4.5), text('idle', 0, 0, 0, 0))
  const [deployment, job, idle] = queuesOf(now, before)
  assert.deepEqual(
    [deployment?.name, deployment?.depth, deployment?.reconciles, deployment?.reconcilesPerSecond, deployment?.retriesPerSecond, deployment?.workMs],
    ['deployment', 3, 30, 5, 2, 50],
  )
  assert.deepEqual([job?.name, job?.reconcilesPerSecond, job?.workMs], ['job', 0, 100])
  assert.deepEqual([idle?.name, idle?.workMs, idle?.waitMs], ['idle', undefined, undefined])
})

test('LRN-05 the first reading of the queues has totals and no rates', () => {
  const [queue] = queuesOf(reading(0, text('job', 1, 4, 10, 1)))
  assert.deepEqual([queue?.depth, queue?.retries, queue?.reconcilesPerSecond, queue?.workMs], [1, 4, 0, 100])
})
