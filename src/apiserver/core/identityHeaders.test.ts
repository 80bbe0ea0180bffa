import assert from 'node:assert/strict'
import { test } from 'node:test'
import { standardRequestHeaders } from '../authn/settings.ts'
import { identityHeaders, inLowerCase, userOfHeaders } from './identityHeaders.ts'

const standard = inLowerCase(standardRequestHeaders)
const users = [
  { name: 'jane', groups: [] },
  { name: 'jane', groups: ['dev', 'a, b'], uid: '1' },
  { name: 'jürgen', groups: ['größe'], extra: { 'example.org/a b%': ['x', 'y'], plain: ['z'] } },
]
for (const user of users) {
  test(`AUN-06 a front proxy is understood as it meant: ${JSON.stringify(user)}`, () => assert.deepEqual(userOfHeaders(identityHeaders(user), standard), user))
}

test('AUN-06 header names hold what they can, the rest percent-encoded', () => {
  assert.deepEqual(Object.keys(identityHeaders({ name: 'a', groups: [], extra: { 'Example.org/é': ['x'] } })), [
    'x-remote-user',
    'x-remote-extra-example.org%2F%C3%A9',
  ])
})

test('AUN-06 without a name there is no user; a name that breaks out of its header is refused', () => {
  assert.equal(userOfHeaders({ 'x-remote-group': 'system:masters' }, standard), undefined)
  assert.equal(userOfHeaders({ 'x-remote-user': '' }, standard), undefined)
  for (const name of ['a\r\nb', 'a\0', 'a\u007f']) assert.throws(() => identityHeaders({ name, groups: [] }), { reason: 'BadRequest' })
  assert.throws(() => identityHeaders({ name: 'a', groups: ['x\ny'] }), { reason: 'BadRequest' })
})

test('AUN-06 the first name counts, groups and extra values of every header', () => {
  const names = {
    usernameHeaders: ['x-user', 'x-remote-user'],
    uidHeaders: ['x-remote-uid'],
    groupHeaders: ['x-group', 'x-remote-group'],
    extraHeaderPrefixes: ['x-a-', 'x-b-'],
  }
  const headers = {
    'x-remote-user': 'jane',
    'x-user': '',
    'x-remote-group': ['dev', ''],
    'x-group': 'ops',
    'x-b-team': 'two',
    'x-a-team': 'one',
    'x-remote-uid': '7',
  }
  assert.deepEqual(userOfHeaders(headers, names), { name: 'jane', uid: '7', groups: ['ops', 'dev'], extra: { team: ['one', 'two'] } })
})
