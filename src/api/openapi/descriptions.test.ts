import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeFrom } from './descriptions.ts'

test('texts are found by definition and field, empty ones are none', () => {
  const describe = describeFrom({ A: ['about A', { b: 'about b', c: '' }], E: ['', {}] })
  assert.deepEqual(
    [describe('A'), describe('A', 'b'), describe('A', 'c'), describe('A', 'x'), describe('E'), describe('X', 'b')],
    ['about A', 'about b', undefined, undefined, undefined, undefined],
  )
})
