import assert from 'node:assert/strict'
import test from 'node:test'
import { median, percentile, rounded } from './statistics.ts'

const medians: [string, number[], number][] = [
  ['one', [3], 3],
  ['odd, unsorted, compared as numbers', [100, 9, 20], 20],
  ['even', [4, 1, 2, 3], 2.5],
  ['none', [], Number.NaN],
]
for (const [name, values, want] of medians) test(`the median: ${name}`, () => assert.equal(median(values), want))

const hundred = Array.from({ length: 100 }, (_, i) => 100 - i)
const percentiles: [number, number][] = [
  [0, 1],
  [0.5, 50],
  [0.99, 99],
  [1, 100],
]
for (const [fraction, want] of percentiles) test(`the ${fraction} percentile`, () => assert.equal(percentile(hundred, fraction), want))

test('numbers are shown with three digits', () => {
  assert.deepEqual([0.123456, 1.2345, 12.345, 123.45, 12345.6, Number.NaN].map(rounded), ['0.123', '1.23', '12.3', '123', '12,346', '-'])
})
