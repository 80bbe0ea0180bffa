import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldPath, fieldError, invalid } from './fieldPath.ts'

const of = { group: 'apps', kind: 'Deployment' }
const missing = fieldError.required(FieldPath.of('spec').child('name'))
const wrong = fieldError.invalid(FieldPath.of('spec', 'list').index(1).key('k'), 3, 'must be 4')
const cause = { reason: 'FieldValueRequired', message: 'Required value', field: 'spec.name' }

test('the message of a refused object says each thing once, the causes as often as it was found', () => {
  const once = invalid(of, 'd', [missing, missing])
  assert.equal(once.message, 'Deployment.apps "d" is invalid: spec.name: Required value')
  assert.deepEqual(once.details?.causes, [cause, cause])
  const two = invalid(of, 'd', [missing, wrong, missing])
  assert.equal(two.message, 'Deployment.apps "d" is invalid: [spec.name: Required value, spec.list[1][k]: Invalid value: 3: must be 4]')
})
