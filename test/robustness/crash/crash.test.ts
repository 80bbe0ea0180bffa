/**
 * Controllers and scheduler die at their calls to the API, one after the other, in the middle of a rollout, a job, a StatefulSet's update, a
 * namespace's deletion, the binding of volumes and the provisioning of local ones: the restarted component must finish the work, with no
 * duplicates, no orphans and no claims that are never released.
 * Every ninth call; SKIFF_CRASH=all tries each of the first 300, SKIFF_CRASH=N or N-M only those.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scenarios } from './scenarios.ts'
import { stepsOf, sweep, victims } from './sweep.ts'

const steps = stepsOf(process.env.SKIFF_CRASH)
const wantsAll = process.env.SKIFF_CRASH === undefined || process.env.SKIFF_CRASH === 'all'

for (const scenario of scenarios) {
  for (const victim of victims) {
    test(`${scenario.row} X10 ${scenario.name}: ${victim} may die at any call`, { timeout: 60 * 60_000 }, async (t) => {
      const deaths = await sweep(scenario, victim, steps)
      t.diagnostic(`${deaths} deaths`)
      // A namespace may be gone before the scheduler gets the events of its last pods.
      if (wantsAll && scenario.name !== 'namespace') assert.ok(deaths > 0, 'no component died')
    })
  }
}

test('X10 a SKIFF_CRASH that means nothing is refused', () => {
  for (const text of ['', 'some', '0', '3-', '-3', 'all ']) assert.throws(() => stepsOf(text), /SKIFF_CRASH/)
  assert.deepEqual(stepsOf('7'), { first: 7, last: 7, every: 1 })
  assert.deepEqual(stepsOf('7-9'), { first: 7, last: 9, every: 1 })
})
