import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serverFlags } from './serverFlags.ts'

test('ARC-13 the heap of a server may take three quarters of a large memory, and what V8 takes by itself of a small one', () => {
  assert.deepEqual(serverFlags(4 * 2 ** 30), ['--max-semi-space-size=32'])
  assert.deepEqual(serverFlags(24 * 2 ** 30), ['--max-semi-space-size=32', '--max-old-space-size=18432'])
  assert.ok(serverFlags().length >= 1)
})
