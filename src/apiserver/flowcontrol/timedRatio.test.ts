import assert from 'node:assert/strict'
import test from 'node:test'
import { TimedRatio } from './timedRatio.ts'

test('API-18 a ratio counts each nanosecond that it had a value', () => {
  const seen: [value: number, nanoseconds: number | undefined][] = []
  const ratio = new TimedRatio({ observe: (value, weight) => void seen.push([value, weight]) }, 100)
  ratio.setDenominator(4, 100)
  ratio.set(0, 101)
  ratio.set(2, 102)
  ratio.set(2, 103)
  ratio.setDenominator(8, 102.5)
  ratio.note(103.5)
  ratio.note(103.5)
  assert.deepEqual(seen, [
    [0, 2e6],
    [0.5, 5e5],
    [0.25, 1e6],
  ])
})
