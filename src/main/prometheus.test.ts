import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPrometheusMetrics } from './prometheus.ts'

test('OBS-01 a metric that is turned off is neither recorded nor exposed, others are', () => {
  const metrics = createPrometheusMetrics(['off_total', 'off_seconds'])
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
