import assert from 'node:assert/strict'
import { test } from 'node:test'
import { controllers } from './controllers.ts'
import type { Look } from './look.ts'

const [scaling] = controllers.tasks

/** A namespace with pods of the Deployment, events about others, and the learner's note. */
function check(deleted: string, podNames: readonly string[], reported: readonly string[]) {
  const look = {
    notes: async () => ({ deleted }),
    list: async ({ resource }: { resource: string }) =>
      resource === 'pods' ? podNames.map((name) => ({ metadata: { name } })) : reported.map((name) => ({ involvedObject: { kind: 'Pod', name } })),
  }
  assert.ok(scaling)
  return scaling.check(look as unknown as Look)
}

const four = ['web-1-a', 'web-1-b', 'web-1-c', 'web-1-d']

test('X20 lab 4 passes with the name of a pod that was scheduled and is gone', async () => {
  assert.deepEqual(await check('web-1-x', four, [...four, 'web-1-x']), { passed: true, observed: '4 pods, web-1-x is not among them' })
})

test('X20 lab 4 refuses the name of a pod that never existed, of one that is there, and of none of web', async () => {
  const observed = async (...given: Parameters<typeof check>) => {
    const outcome = await check(...given)
    assert.equal(outcome.passed, false)
    return outcome.observed
  }
  assert.equal(await observed('web-1-y', four, four), '4 pods, web-1-y is no pod that web had: there are no events about it')
  assert.equal(await observed('web-1-a', four, four), '4 pods, web-1-a is still among them')
  assert.match(await observed('other', four, [...four, 'other']), /other is no pod that web had/)
  assert.match(await observed('web-1-x', four.slice(1), ['web-1-x']), /^3 pods/)
})
