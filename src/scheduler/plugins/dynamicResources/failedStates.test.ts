import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FailedStates } from './failedStates.ts'

test('DRA-04 the memory of a search stays below its bound in bytes, and a full one still answers', () => {
  const states = new FailedStates(10_000)
  for (let index = 0; index < 1000; index++) states.add(`${index} ${'x'.repeat(100)}`)
  assert.ok(states.bytes <= 10_000)
  assert.ok(states.bytes > 9_000)
  assert.ok(states.has(`0 ${'x'.repeat(100)}`))
  assert.ok(!states.has(`999 ${'x'.repeat(100)}`))
})
