import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortText } from './shortText.ts'

test('a text that fits stays as it is, a longer one ends with an ellipsis', () => {
  assert.deepEqual([shortText('abc', 3), shortText('abcd', 3)], ['abc', 'abc…'])
})
