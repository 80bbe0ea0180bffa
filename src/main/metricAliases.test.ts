import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aliasesOf, quantileOf } from './metricAliases.ts'
import { createPrometheusMetrics } from './prometheus.ts'

test('OBS-05 a quantile is linear within its bucket, the last bound beyond it, and NaN without observations', () => {
  const buckets = [
    { bound: 1, count: 5 },
    { bound: 2, count: 10 },
    { bound: Number.POSITIVE_INFINITY, count: 12 },
  ]
  assert.deepEqual(
    [0.25, 0.5, 0.99].map((quantile) => quantileOf(buckets, quantile)),
    [0.6, 1.2, 2],
  )
  assert.ok(Number.isNaN(quantileOf([{ bound: 1, count: 0 }], 0.5)))
})

test('OBS-05 OBS-11 --reference-metrics shows the names of the reference documents in addition to upstream’s', () => {
  const metrics = createPrometheusMetrics()
  metrics.restrict({ extend: aliasesOf })
  const attempts = metrics.histogram({ name: 'scheduler_scheduling_attempt_duration_seconds', help: 'A.', labels: ['result', 'profile'], buckets: [1, 2] })
  for (const seconds of [0.5, 1.5]) attempts.observe(seconds, { result: 'scheduled', profile: 'p' })
  metrics.histogram({ name: 'workqueue_work_duration_seconds', help: 'W.', labels: ['name'], buckets: [1] }).observe(0.5, { name: 'q' })
  const text = metrics.render()
  assert.deepEqual(text.match(/^scheduler_scheduling_duration_seconds.*$/gm), [
    'scheduler_scheduling_duration_seconds{result="scheduled",profile="p",quantile="0.5"} 1',
    'scheduler_scheduling_duration_seconds{result="scheduled",profile="p",quantile="0.9"} 1.8',
    'scheduler_scheduling_duration_seconds{result="scheduled",profile="p",quantile="0.99"} 1.98',
    'scheduler_scheduling_duration_seconds_sum{result="scheduled",profile="p"} 2',
    'scheduler_scheduling_duration_seconds_count{result="scheduled",profile="p"} 2',
  ])
  assert.match(text, /^controller_sync_duration_seconds_bucket\{name="q",le="1"\} 1$/m)
})
