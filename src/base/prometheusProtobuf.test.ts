import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFamilies } from '#testing/prometheusMessages'
import { labelsText, type MetricFamily } from './metricFamily.ts'
import { delimitedFamilies } from './prometheusProtobuf.ts'

const exemplar = { traceId: 't'.repeat(32), spanId: 's'.repeat(16), value: 3, atMs: 1_520_879_607_789 }

test('OBS-01 each family is a message behind its length, with labels, values, times, buckets, quantiles and exemplars', () => {
  const families: MetricFamily[] = [
    { name: 'c_total', type: 'counter', help: 'é', samples: [{ labels: labelsText({ a: 'x"y\n', b: '' }), value: 2 ** 40 }] },
    { name: 'empty', type: 'gauge', help: 'E.', samples: [] },
    { name: 'g', type: 'gauge', help: '', samples: [{ labels: '', value: -0.5, atMs: 1_700_000_000_123 }] },
    {
      name: 'h',
      type: 'histogram',
      help: 'H.',
      bounds: [1, 2],
      samples: [{ labels: '', counts: [1, 0, 4], sum: 9, exemplars: [undefined, undefined, exemplar] }],
    },
    { name: 'plain', type: 'histogram', help: 'P.', bounds: [1], samples: [{ labels: '', counts: [0, 300], sum: 900 }] },
    { name: 's', type: 'summary', help: 'S.', samples: [{ labels: '', count: 2, sum: 3, quantiles: [{ quantile: 0.5, value: 1.5 }] }] },
  ]
  const read = readFamilies(delimitedFamilies(families))
  assert.deepEqual(
    read.map(({ name, help, type }) => [name, help, type]),
    [
      ['c_total', 'é', 0],
      ['g', '', 1],
      ['h', 'H.', 4],
      ['plain', 'P.', 4],
      ['s', 'S.', 2],
    ],
  )
  const [counter, gauge, histogram, plain, summary] = read.map(({ metrics }) => metrics[0])
  assert.deepEqual(counter, { labels: { a: 'x"y\n', b: '' }, values: { 'counter.value': 2 ** 40 }, exemplars: [] })
  assert.deepEqual(gauge?.values, { 'gauge.value': -0.5, timestamp_ms: 1_700_000_000_123 })
  assert.deepEqual(histogram, {
    labels: {},
    values: {
      'histogram.sample_count': 5,
      'histogram.sample_sum': 9,
      'histogram.bucket.0.cumulative_count': 1,
      'histogram.bucket.0.upper_bound': 1,
      'histogram.bucket.1.cumulative_count': 1,
      'histogram.bucket.1.upper_bound': 2,
      'histogram.bucket.2.cumulative_count': 5,
      'histogram.bucket.2.upper_bound': Number.POSITIVE_INFINITY,
      'histogram.bucket.2.exemplar.value': 3,
      'histogram.bucket.2.exemplar.timestamp.seconds': 1_520_879_607,
      'histogram.bucket.2.exemplar.timestamp.nanos': 789_000_000,
    },
    exemplars: [{ trace_id: exemplar.traceId, span_id: exemplar.spanId }],
  })
  assert.equal(plain?.values['histogram.sample_count'], 300)
  assert.equal(plain?.values['histogram.bucket.1.upper_bound'], undefined, 'the bucket of +Inf is not written')
  assert.deepEqual(summary?.values, { 'summary.sample_count': 2, 'summary.sample_sum': 3, 'summary.quantile.0.quantile': 0.5, 'summary.quantile.0.value': 1.5 })
})

test('OBS-01 messages may be longer than any length that was expected', () => {
  const samples = Array.from({ length: 20_000 }, (_, at) => ({ labels: labelsText({ path: `/${'x'.repeat(200)}/${at}` }), value: at }))
  const [family] = readFamilies(delimitedFamilies([{ name: 'many', type: 'counter', help: 'M.', samples }]))
  assert.equal(family?.metrics.length, samples.length)
  assert.deepEqual(family?.metrics.at(-1)?.values, { 'counter.value': 19_999 })
})
