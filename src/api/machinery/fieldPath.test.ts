import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldPath, fieldError, invalid, limitedFaults } from './fieldPath.ts'

const of = { group: 'apps', kind: 'Deployment' }
const missing = fieldError.required(FieldPath.of('spec').child('name'))
const wrong = fieldError.invalid(FieldPath.of('spec', 'list').index(1).key('k'), 3, 'must be 4')
const cause = { reason: 'FieldValueRequired', message: 'Required value', field: 'spec.name' }

test('the message of a refused object lists each error once, the causes each time it was found', () => {
  const once = invalid(of, 'd', [missing, missing])
  assert.equal(once.message, 'Deployment.apps "d" is invalid: spec.name: Required value')
  assert.deepEqual(once.details?.causes, [cause, cause])
  const two = invalid(of, 'd', [missing, wrong, missing])
  assert.equal(two.message, 'Deployment.apps "d" is invalid: [spec.name: Required value, spec.list[1][k]: Invalid value: 3: must be 4]')
})

test('API-02 a validation stops after 20,000 faults of an object, and the answer reports at least that many', () => {
  let looked = 0
  const faults = limitedFaults((root) =>
    Array.from({ length: 100_000 }, (_, i) => {
      looked++
      return fieldError.required(root.child('spec', 'items').index(i))
    }),
  )
  assert.equal(looked, 20_001)
  assert.equal(faults[0]?.field, 'spec.items[0]')
  const { message } = invalid({ group: '', kind: 'Pod' }, 'p', faults)
  assert.ok(message.endsWith(', and at least 19001 more errors]'), message.slice(-100))
})

test('API-02 the text of faults that each show a whole list stays below two megabytes', () => {
  const list = 'x'.repeat(300_000)
  const faults = Array.from({ length: 900 }, (_, i) => fieldError.invalid(FieldPath.of('a').index(i), list, 'is wrong'))
  const { message, details } = invalid({ group: '', kind: 'Pod' }, 'p', faults)
  assert.equal(details?.causes?.length, 4)
  assert.ok(message.length < 2_000_000)
  assert.ok(message.endsWith(', and 896 more errors]'))
})
