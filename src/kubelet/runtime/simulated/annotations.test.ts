import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { annotatedPull } from './annotations.ts'

for (const [written, delayMs] of [
  ['2.5', 2_500],
  ['600', 600_000],
  ['3000000', 600_000],
] as const)
  test(`CRI-02 a simulated pull of ${written} seconds takes ${delayMs} ms: pods of other namespaces wait for it`, () => {
    assert.deepEqual(annotatedPull({ 'skiff.dev/simulated-pull-seconds': written }, seededRandom(1)), { delayMs })
  })
