import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasMoreMembers } from './members.ts'

test('members and items count at every depth, up to the limit', () => {
  const value = { a: [1, { b: null }], c: {} }
  assert.equal(hasMoreMembers(value, 4), true)
  assert.equal(hasMoreMembers(value, 5), false)
  assert.equal(hasMoreMembers({}, 0), false)
  assert.equal(hasMoreMembers([[[['deep']]]], 3), true)
})
