import assert from 'node:assert/strict'
import test from 'node:test'
import { median, percentile, ratioInterval, rounded } from './statistics.ts'

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

test('the interval of equal ratios is a point', () => {
  const { mean, low, high } = ratioInterval([2, 4, 6], [1, 2, 3])
  for (const value of [mean, low, high]) assert.ok(Math.abs(value - 2) < 1e-9)
})

test('the interval of two pairs is as wide as the t distribution with one degree of freedom says', () => {
  const { mean, low, high } = ratioInterval([Math.E, 1], [1, 1])
  const half = 12.706 / 2
  assert.deepEqual(
    [mean, low, high].map((value) => Math.log(value).toFixed(6)),
    [0.5, 0.5 - half, 0.5 + half].map((value) => value.toFixed(6)),
  )
})

test('one pair has no interval', () => assert.throws(() => ratioInterval([1], [1]), RangeError))
