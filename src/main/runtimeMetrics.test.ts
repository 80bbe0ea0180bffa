import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createPrometheusMetrics } from './prometheus.ts'
import { addRuntimeMetrics } from './runtimeMetrics.ts'

/** prom-client's default metrics of the runtime. */
const names = [
  ...['', '_min', '_max', '_mean', '_stddev', '_p50', '_p90', '_p99'].map((of) => `nodejs_eventloop_lag${of}_seconds`),
  ...['resources', 'handles', 'requests'].map((what) => `nodejs_active_${what}_total`),
  ...['heap_size_total', 'heap_size_used', 'external_memory'].map((what) => `nodejs_${what}_bytes`),
  ...['total', 'used', 'available'].map((what) => `nodejs_heap_space_size_${what}_bytes`),
  'nodejs_active_resources',
  'nodejs_version_info',
  'nodejs_gc_duration_seconds',
]

test('OBS-16 delays of the event loop, garbage collections, handles and heap spaces of the process are shown under prom-client’s names', async () => {
  const metrics = createPrometheusMetrics()
  addRuntimeMetrics(metrics)
  metrics.render()
  let garbage: unknown[] = []
  const hasCollected = () => /^nodejs_gc_duration_seconds_count\{kind="\w+"\} [1-9]/m.test(metrics.render())
  for (let turns = 0; turns < 10_000 && !hasCollected(); turns++) {
    garbage = Array.from({ length: 20_000 }, (_, at) => ({ at, of: garbage.length }))
    await turn()
  }
  const text = metrics.render()
  for (const name of names) assert.match(text, new RegExp(`^# TYPE ${name} `, 'm'), name)
  const value = (series: string) => Number(new RegExp(`^${series} (\\S+)$`, 'm').exec(text)?.[1])
  assert.match(text, /^nodejs_gc_duration_seconds_bucket\{kind="(minor|major|incremental|weakcb)",le="0\.001"\} \d+$/m)
  assert.ok(value('nodejs_heap_space_size_used_bytes\\{space="old"\\}') > 0)
  assert.ok(value('nodejs_heap_size_used_bytes') > 0)
  assert.ok(value('nodejs_eventloop_lag_p99_seconds') < 3600)
  const [major, minor, patch] = process.versions.node.split('.')
  assert.equal(value(`nodejs_version_info\\{version="${process.version}",major="${major}",minor="${minor}",patch="${patch}"\\}`), 1)
})

test('OBS-16 what keeps the process alive is counted by type, and a type that is gone is not shown any longer', () => {
  const metrics = createPrometheusMetrics()
  let handles = ['Socket', 'Server', 'Socket']
  addRuntimeMetrics(metrics, { resources: () => ['Timeout'], handles: () => handles, requests: () => [] })
  const shown = () => metrics.render().match(/^nodejs_active_.*$/gm)
  assert.deepEqual(shown(), [
    'nodejs_active_resources_total 1',
    'nodejs_active_resources{type="Timeout"} 1',
    'nodejs_active_handles_total 3',
    'nodejs_active_handles{type="Socket"} 2',
    'nodejs_active_handles{type="Server"} 1',
    'nodejs_active_requests_total 0',
  ])
  handles = ['Server']
  assert.deepEqual(shown()?.slice(2, 4), ['nodejs_active_handles_total 1', 'nodejs_active_handles{type="Server"} 1'])
})
