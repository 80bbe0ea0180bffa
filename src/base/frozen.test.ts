import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DeepReadonly, deepFreeze, mutableCopy } from './frozen.ts'

interface Labelled {
  metadata: { labels?: Record<string, string>; owners: { name: string }[] }
}

test('a mutable copy of a frozen object can be changed, by its type too, and leaves the object as it is', () => {
  const frozen: DeepReadonly<Labelled> = deepFreeze<Labelled>({ metadata: { owners: [{ name: 'a' }] } })
  const copy = mutableCopy(frozen)
  copy.metadata.labels = { app: 'web' }
  copy.metadata.owners.push({ name: 'b' })
  const same: Labelled = copy
  assert.deepEqual(same, { metadata: { labels: { app: 'web' }, owners: [{ name: 'a' }, { name: 'b' }] } })
  assert.deepEqual(frozen, { metadata: { owners: [{ name: 'a' }] } })
})
