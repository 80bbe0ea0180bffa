import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labelsText } from './metricFamily.ts'
import { prometheusText } from './prometheusText.ts'

test('OBS-01 labels and help are escaped, infinite values are spelled as Prometheus spells them', () => {
  const samples = [
    { labels: labelsText({ path: 'a"b\\c\nd', code: 200 }), value: Number.POSITIVE_INFINITY },
    { labels: '', value: Number.NEGATIVE_INFINITY },
    { labels: '', value: 1.5, atMs: 1700 },
  ]
  const text = prometheusText([{ name: 'm', type: 'gauge', help: 'a "quoted"\\\nhelp', samples }])
  assert.deepEqual(text.split('\n'), [
    '# HELP m a "quoted"\\\\\\nhelp',
    '# TYPE m gauge',
    'm{path="a\\"b\\\\c\\nd",code="200"} +Inf',
    'm -Inf',
    'm 1.5 1700',
    '',
  ])
})

test('OBS-01 a family without samples has no text', () => {
  assert.equal(prometheusText([{ name: 'm', type: 'counter', help: 'help', samples: [] }]), '')
})

test('OBS-01 a histogram shows summed-up buckets without exemplars, and a summary its quantiles', () => {
  const exemplars = [{ traceId: 'a', spanId: 'b', value: 1, atMs: 1 }]
  const histogram = {
    name: 'h',
    type: 'histogram' as const,
    help: 'H.',
    bounds: [0.5, 1],
    samples: [{ labels: 'a="b"', counts: [1, 2, 3], sum: 7.5, exemplars }],
  }
  const summary = { name: 's', type: 'summary' as const, help: 'S.', samples: [{ labels: '', count: 2, sum: 3, quantiles: [{ quantile: 0.5, value: 1 }] }] }
  assert.equal(
    prometheusText([histogram, summary]),
    `# HELP h H.
# TYPE h histogram
h_bucket{a="b",le="0.5"} 1
h_bucket{a="b",le="1"} 3
h_bucket{a="b",le="+Inf"} 6
h_sum{a="b"} 7.5
h_count{a="b"} 6
# HELP s S.
# TYPE s summary
s{quantile="0.5"} 1
s_sum 3
s_count 2
`,
  )
})
