import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownLogOf } from './controlPlanes.ts'

const several = { servers: [{ name: 'server-1', port: 1 }] }
const logs = [
  { name: 'a file of its own', state: several, file: '/var/log/audit.log', want: '/var/log/audit-server-1.log' },
  { name: 'a file of its own without an ending', state: several, file: '/var/log/audit', want: '/var/log/audit-server-1' },
  { name: 'standard output', state: several, file: '-', want: '-' },
  { name: 'no file', state: several, file: '', want: '' },
  { name: 'the file of the flag when it is the only server', state: {}, file: '/var/log/audit.log', want: '/var/log/audit.log' },
]
for (const { name, state, file, want } of logs) {
  test(`HA-01 a server writes a log to ${name}`, () => {
    assert.equal(ownLogOf(state, 'server-1', file), want)
  })
}
