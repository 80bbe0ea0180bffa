import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPrometheusMetrics } from './prometheus.ts'

test('OBS-01 a metric that is turned off is neither recorded nor exposed, others are', () => {
  const metrics = createPrometheusMetrics()
  metrics.restrict({ disabled: ['off_total', 'off_seconds'] })
  metrics
    .counter({ name: 'off_total', help: 'Off.', labels: ['a'] })
    .series({ a: 'b' })
    .inc()
  metrics.histogram({ name: 'off_seconds', help: 'Off.' }).observe(1)
  metrics.gauge({ name: 'on', help: 'On.' }).set(2)
  assert.equal(metrics.render(), '# HELP on On.\n# TYPE on gauge\non 2\n')
})

test('OBS-01 counters, gauges, histograms and summaries are shown in the exposition format', () => {
  const metrics = createPrometheusMetrics()
  const counter = metrics.counter({ name: 'requests_total', help: 'Requests\nby code \\ verb.', labels: ['verb', 'code'] })
  counter.inc({ verb: 'GET', code: 200 })
  counter.inc({ verb: 'GET', code: 200 }, 2)
  counter.series({ verb: 'P"\\\n', code: 201 }).inc()
  const gauge = metrics.gauge({ name: 'in_flight', help: 'Now.' })
  gauge.set(5)
  gauge.dec()
  const histogram = metrics.histogram({ name: 'seconds', help: 'Time.', labels: ['verb'], buckets: [0.1, 1] })
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(value, { verb: 'GET' })
  const summary = metrics.summary({ name: 'took', help: 'Took.', labels: ['verb'] })
  summary.observe(2, { verb: 'GET' })
  summary.series({ verb: 'GET' }).observe(0.5)
  assert.equal(
    metrics.render(),
    `# HELP requests_total Requests\\nby code \\\\ verb.
# TYPE requests_total counter
requests_total{verb="GET",code="200"} 3
requests_total{verb="P\\"\\\\\\n",code="201"} 1
# HELP in_flight Now.
# TYPE in_flight gauge
in_flight 4
# HELP seconds Time.
# TYPE seconds histogram
seconds_bucket{verb="GET",le="0.1"} 2
seconds_bucket{verb="GET",le="1"} 3
seconds_bucket{verb="GET",le="+Inf"} 4
seconds_sum{verb="GET"} 7.65
seconds_count{verb="GET"} 4
# HELP took Took.
# TYPE took summary
took_sum{verb="GET"} 2.5
took_count{verb="GET"} 2
`,
  )
})

test('asking twice for a name gives the same metric, and a series is the same as its labels', () => {
  const metrics = createPrometheusMetrics()
  const options = { name: 'x_total', help: 'x', labels: ['a', 'b'] }
  metrics.counter(options).series({ a: '1', b: '2' }).inc()
  metrics.counter(options).inc({ b: '2', a: '1' })
  assert.match(metrics.render(), /^x_total\{a="1",b="2"\} 2$/m)
})

test('a metric without series is not shown, and a removed series is gone', () => {
  const metrics = createPrometheusMetrics()
  const gauge = metrics.gauge({ name: 'depth', help: 'd', labels: ['queue'] })
  assert.equal(metrics.render(), '')
  gauge.set(1, { queue: 'a' })
  gauge.set(2, { queue: 'b' })
  gauge.remove({ queue: 'a' })
  assert.deepEqual(metrics.render().match(/^depth.*/gm), ['depth{queue="b"} 2'])
})

const documented = new Map([
  ['stable_total', { stability: 'STABLE' }],
  ['old', { stability: 'STABLE', deprecatedVersion: '1.34.0' }],
  ['gone', { stability: 'BETA', deprecatedVersion: '1.34.0' }],
] as const)

test('OBS-02 a component’s help texts name the stability, and the metrics are counted by it', () => {
  const metrics = createPrometheusMetrics(documented)
  for (const name of ['stable_total', 'other_total', 'process_x']) metrics.counter({ name, help: 'H.' })
  metrics.gauge({ name: 'old', help: 'O.' })
  const text = metrics.render()
  assert.match(text, /^# HELP stable_total \[STABLE\] H\.$/m)
  assert.match(text, /^# HELP other_total \[ALPHA\] H\.$/m)
  assert.match(text, /^# HELP process_x H\.$/m)
  assert.match(text, /^# HELP old \[STABLE\] \(Deprecated since 1\.34\.0\) O\.$/m)
  assert.match(text, /^registered_metrics_total\{stability_level="STABLE",deprecated_version="1\.34\.0"\} 1$/m)
})

test('OBS-02 a deprecated metric is hidden when its period is over, and shown by --show-hidden-metrics-for-version', () => {
  const metrics = createPrometheusMetrics(documented)
  metrics.gauge({ name: 'gone', help: 'G.' }).set(1)
  metrics.gauge({ name: 'old', help: 'O.' }).set(1)
  const shown = () => metrics.render().match(/^(gone|old) 1$/gm)
  assert.deepEqual(shown(), ['old 1'])
  assert.match(metrics.render(), /^hidden_metrics_total 1$/m)
  metrics.restrict({ showHidden: true })
  assert.deepEqual(shown(), ['gone 1', 'old 1'])
})

test('OBS-02 label values outside of the allow list are recorded as unexpected and counted', () => {
  const metrics = createPrometheusMetrics(documented)
  metrics.restrict({ allowedLabels: new Map([['a_total', new Map([['code', new Set(['200'])]])]]) })
  const counter = metrics.counter({ name: 'a_total', help: 'A.', labels: ['code', 'verb'] })
  for (const code of [200, 500, 503]) counter.inc({ code, verb: 'GET' })
  counter.series({ code: '404', verb: 'GET' }).inc()
  assert.deepEqual(metrics.render().match(/^a_total.*$/gm), ['a_total{code="200",verb="GET"} 1', 'a_total{code="unexpected",verb="GET"} 3'])
  assert.match(metrics.render(), /^cardinality_enforcement_unexpected_categorizations_total 3$/m)
})

test('OBS-02 a metric keeps a bounded number of series, however many label values a client makes up', () => {
  const metrics = createPrometheusMetrics()
  const counter = metrics.counter({ name: 'a_total', help: 'A.', labels: ['path'] })
  for (let at = 0; at < 30_000; at++) counter.inc({ path: `/${at}` })
  const text = metrics.render()
  assert.equal(text.match(/^a_total/gm)?.length, 20_000)
  assert.match(text, /^skiff_metric_series_dropped_total\{metric="a_total"\} 10000$/m)
})
