import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyChange, enabledEntry, noAuthData, noRole, noUser, revisionEntry, roleEntry, userEntry } from './records.ts'

const hex = ({ value }: { readonly value: Uint8Array }) => Buffer.from(value).toString('hex')

/** The bytes that etcd 3.6 writes for the same users and roles. */
test('ETC-24 users and roles have the bytes of authpb, without defaults', () => {
  assert.equal(hex(userEntry({ name: 'al', password: 'pw', roles: ['r', 's'], hasNoPassword: false })), '0a02616c120270771a01721a01732200')
  assert.equal(hex(userEntry({ name: 'al', password: '', roles: [], hasNoPassword: true })), '0a02616c22020801')
  const permissions = [{ type: 'READ', key: 'a', rangeEnd: '' } as const, { type: 'READWRITE', key: 'b', rangeEnd: '\0' } as const]
  assert.equal(hex(roleEntry({ name: 'r', permissions })), '0a0172120312016112080802120162' + '1a0100')
  assert.equal(hex(revisionEntry(258)), '0000000000000102')
  assert.equal(hex(enabledEntry(true)), '01')
})

test('ETC-24 entries are read again as what was written, also names and keys that are no ASCII', () => {
  const user = { name: 'jürgen', password: '$2b$04$x', roles: ['ä', '€'], hasNoPassword: false }
  const role = { name: '€', permissions: [{ type: 'WRITE', key: '\xff\0', rangeEnd: '\xff\x01' } as const] }
  const data = noAuthData()
  for (const entry of [userEntry(user), roleEntry(role), enabledEntry(true), revisionEntry(9)]) applyChange(data, entry)
  assert.deepEqual(data, { isEnabled: true, revision: 9, users: new Map([[user.name, user]]), roles: new Map([[role.name, role]]) })
  for (const change of [noUser(user.name), noRole(role.name), enabledEntry(false)]) applyChange(data, change)
  assert.deepEqual(data, { isEnabled: false, revision: 9, users: new Map(), roles: new Map() })
})
