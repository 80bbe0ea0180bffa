import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareResourceVersion, isAtLeast } from './resourceVersion.ts'

test('resourceVersions compare as numbers of any length; what is none is refused', () => {
  assert.equal(compareResourceVersion('9', '10') < 0, true)
  assert.equal(compareResourceVersion('123456789012345678901', '123456789012345678900') > 0, true)
  assert.equal(compareResourceVersion('7', '7'), 0)
  for (const bad of ['', '0', '07', '1a', '-1']) assert.throws(() => compareResourceVersion(bad, '1'), /not well formed/)
})

test('nothing yet is older than anything', () => {
  assert.deepEqual([isAtLeast('', '1'), isAtLeast('0', '1'), isAtLeast('2', '2'), isAtLeast('3', '20')], [false, false, true, false])
})
