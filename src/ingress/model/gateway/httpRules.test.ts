import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileHttpRules } from './httpRules.ts'
import type { HttpRoute, HttpRule } from './kinds.ts'

const view = {
  service: () => undefined,
  problemOfSecret: () => undefined,
  namespaceLabels: () => ({}),
  grantsIn: () => [],
  policiesFor: () => [],
  authoritiesIn: () => ({ problem: 'there is none' }),
}
const routeOf = (...rules: readonly HttpRule[]) => ({ metadata: { namespace: 'default', name: 'web' }, spec: { rules } }) as unknown as HttpRoute

for (const [field, words] of [
  ['retry', 'a retry'],
  ['sessionPersistence', 'session persistence'],
] as const) {
  test(`ING-05 a route whose rules have ${field} is not accepted, and says so`, () => {
    const { accepted, matches } = compileHttpRules(routeOf({ [field]: {} }), view)
    assert.deepEqual([accepted.status, accepted.reason, accepted.message], ['False', 'UnsupportedValue', `${words} of rule 0 is not supported`])
    assert.deepEqual(matches, [])
  })
  test(`ING-05 a rule with ${field} is left out, and the others are served`, () => {
    const { accepted, matches, partiallyInvalid } = compileHttpRules(routeOf({ [field]: {} }, {}), view)
    assert.deepEqual([accepted.status, matches.length, partiallyInvalid?.message], ['True', 1, `Dropped Rule: ${words} of rule 0 is not supported`])
  })
}
