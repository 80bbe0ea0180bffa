import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DeepReadonly, deepCopy, deepCopyInSteps, deepFreeze, mutableCopy } from './frozen.ts'

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

test('API-02 a copy in steps equals the copy at once, and pauses within an object or a list of many members', () => {
  const wide = Object.fromEntries(Array.from({ length: 25_000 }, (_, at) => [`k${at}`, at % 2 === 0 ? 'v' : { list: [at] }]))
  const long = Array.from({ length: 10_000 }, (_, at) => (at % 2 === 0 ? at : { at }))
  const value = { wide, long, own: JSON.parse('{"__proto__":{"a":1}}'), list: [{ a: [1] }], none: null }
  const steps = deepCopyInSteps(value)
  let pauses = 0
  let step = steps.next()
  for (; !step.done; step = steps.next()) pauses++
  assert.deepEqual(step.value, deepCopy(value))
  assert.notEqual(step.value.wide.k1, value.wide.k1)
  // After each ten thousandth of some 65,000 members and items.
  assert.equal(pauses, 6)
})
