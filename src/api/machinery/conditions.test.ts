import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Condition } from '#api/gen/types/meta.v1'
import { findCondition, isConditionTrue, setStatusCondition, withoutCondition } from './conditions.ts'
import { intValue, percentOf, scaledValue } from './intOrString.ts'

test('a condition is added, changed in place, and its time moves only with its status', () => {
  const list: Condition[] = []
  const ready = { type: 'Ready', status: 'False', reason: 'Starting', message: '' }
  assert.equal(setStatusCondition(list, ready, 0), true)
  assert.equal(setStatusCondition(list, ready, 1000), false)
  assert.equal(setStatusCondition(list, { ...ready, reason: 'Waiting' }, 2000), true)
  assert.deepEqual(list, [{ ...ready, reason: 'Waiting', lastTransitionTime: '1970-01-01T00:00:00Z' }])
  assert.equal(setStatusCondition(list, { ...ready, status: 'True' }, 3000), true)
  assert.equal(findCondition(list, 'Ready')?.lastTransitionTime, '1970-01-01T00:00:03Z')
  assert.equal(isConditionTrue(list, 'Ready'), true)
  assert.equal(isConditionTrue(undefined, 'Ready'), false)
  assert.deepEqual(withoutCondition(list, 'Ready'), [])
})

test('percentages scale, numbers stay', () => {
  assert.deepEqual([scaledValue('25%', 10, true), scaledValue('25%', 10, false), scaledValue(3, 10, true), scaledValue('3', 10, true)], [3, 2, 3, undefined])
  assert.deepEqual([intValue('12'), intValue('a'), intValue(4), percentOf('7%'), percentOf(7)], [12, 0, 4, 7, undefined])
})
