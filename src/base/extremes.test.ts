import assert from 'node:assert/strict'
import { test } from 'node:test'
import { append, greatest, least } from './extremes.ts'

test('ARC-10 the least and the greatest of a million numbers are found, and a million items appended', () => {
  const many = Array.from({ length: 1_000_000 }, (_, at) => at)
  assert.deepEqual([least(many), greatest(many), greatest(many, 2e6), least(many, -1)], [0, 999_999, 2e6, -1])
  const list = [1]
  append(list, many)
  assert.deepEqual([list.length, list.at(-1)], [1_000_001, 999_999])
})

test('ARC-10 extremes of no numbers are what Math has, or the bound', () => {
  assert.deepEqual([least([]), greatest([]), greatest([], 0)], [Math.min(), Math.max(), 0])
  assert.ok(Number.isNaN(least([1, Number.NaN])) && Number.isNaN(greatest([Number.NaN, 1])))
})
