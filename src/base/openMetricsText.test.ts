import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MetricFamily } from './metricFamily.ts'
import { openMetricsText } from './openMetricsText.ts'

const exemplar = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', value: 0.67, atMs: 1_520_879_607_789 }

test('OBS-01 OpenMetrics names counters without _total, writes units, floats with a point and exemplars, and ends with EOF', () => {
  const families: MetricFamily[] = [
    { name: 'process_cpu_seconds_total', type: 'counter', help: 'CPU "time".', samples: [{ labels: '', value: 12 }] },
    { name: 'restarts', type: 'counter', help: 'R.', samples: [{ labels: 'a="b"', value: 1.5 }] },
    { name: 'size_bytes', type: 'gauge', help: 'S.', samples: [{ labels: '', value: 1e21, atMs: 1_395_066_363_500 }] },
    {
      name: 'took_seconds',
      type: 'histogram',
      help: 'T.',
      bounds: [0.5, 1],
      samples: [{ labels: 'verb="GET"', counts: [0, 2, 1], sum: 4, exemplars: [undefined, exemplar, undefined] }],
    },
    { name: 'asked', type: 'summary', help: 'A.', samples: [{ labels: '', count: 3, sum: 6, quantiles: [{ quantile: 1, value: Number.NaN }] }] },
    { name: 'empty', type: 'gauge', help: 'E.', samples: [] },
  ]
  assert.equal(
    openMetricsText(families),
    `# HELP process_cpu_seconds CPU \\"time\\".
# TYPE process_cpu_seconds counter
# UNIT process_cpu_seconds seconds
process_cpu_seconds_total 12.0
# HELP restarts R.
# TYPE restarts unknown
restarts{a="b"} 1.5
# HELP size_bytes S.
# TYPE size_bytes gauge
# UNIT size_bytes bytes
size_bytes 1e+21 1395066363.5
# HELP took_seconds T.
# TYPE took_seconds histogram
# UNIT took_seconds seconds
took_seconds_bucket{verb="GET",le="0.5"} 0
took_seconds_bucket{verb="GET",le="1.0"} 2 # {trace_id="${exemplar.traceId}",span_id="${exemplar.spanId}"} 0.67 1520879607.789
took_seconds_bucket{verb="GET",le="+Inf"} 3
took_seconds_sum{verb="GET"} 4.0
took_seconds_count{verb="GET"} 3
# HELP asked A.
# TYPE asked summary
asked{quantile="1.0"} NaN
asked_sum 6.0
asked_count 3
# EOF
`,
  )
})

test('OBS-01 OpenMetrics of no families is the line that ends it', () => {
  assert.equal(openMetricsText([]), '# EOF\n')
})
