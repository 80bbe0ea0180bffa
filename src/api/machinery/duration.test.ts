import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration, humanDuration, parseDuration } from './duration.ts'

const minute = 60
const hour = 3600
const day = 24 * hour
const ages: [number, string][] = [
  [-2, '<invalid>'],
  [-1.5, '0s'],
  [0, '0s'],
  [119, '119s'],
  [2 * minute, '2m'],
  [2 * minute + 5, '2m5s'],
  [10 * minute + 5, '10m'],
  [179 * minute, '179m'],
  [3 * hour, '3h'],
  [3 * hour + 7 * minute, '3h7m'],
  [8 * hour + minute, '8h'],
  [47 * hour, '47h'],
  [2 * day, '2d'],
  [2 * day + hour, '2d1h'],
  [8 * day + hour, '8d'],
  [729 * day, '729d'],
  [2 * 365 * day, '2y'],
  [2 * 365 * day + 3 * day, '2y3d'],
  [9 * 365 * day + 3 * day, '9y'],
]
for (const [seconds, want] of ages) test(`an age of ${seconds}s is ${want}`, () => assert.equal(humanDuration(seconds * 1000), want))

test('Go durations both ways', () => {
  const pairs: [string, number][] = [
    ['1h30m0s', 5_400_000],
    ['1.5s', 1500],
    ['250ms', 250],
    ['0s', 0],
    ['-1m0s', -60_000],
    ['2µs', 0.002],
  ]
  for (const [text, ms] of pairs) {
    assert.equal(parseDuration(text), ms)
    assert.equal(formatDuration(ms), text)
  }
  assert.deepEqual(['', '5', '1d', 's', '1h '].map(parseDuration), [undefined, undefined, undefined, undefined, undefined])
})
