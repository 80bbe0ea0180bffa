import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Claims } from './claims.ts'

test('ING-04 the oldest claim wins, whatever the order of additions, and those that win or lose are noted', () => {
  const claims = new Claims<string>()
  const set = (key: string, age: string) => {
    const touched = new Set<string>()
    claims.set({ key, age }, `value of ${key} at ${age}`, touched)
    return [...touched].sort()
  }
  assert.deepEqual([set('b', '2'), set('a', '3'), set('c', '1'), set('c', '1')], [['b'], [], ['b', 'c'], []])
  assert.deepEqual([claims.value, set('c', '4'), claims.isHeldBy('b')], ['value of c at 1', ['b', 'c'], true])
  const touched = new Set<string>()
  for (const key of ['b', 'a', 'gone', 'c']) claims.delete(key, touched)
  assert.deepEqual([claims.isEmpty, [...touched].sort()], [true, ['a', 'b', 'c']])
})
