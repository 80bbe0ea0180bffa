import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Backend } from './backend.ts'
import { requestHeaders, upgradeHeaders } from './forwardedHeaders.ts'

const backend: Backend = {
  ...{ host: 'b', port: 1, path: '/', headers: { 'x-remote-user': ['alice'] } },
  identityHeaders: ['x-user', 'x-team-'],
}
const forged = {
  'x-remote-user': ['root'],
  'x-remote-group': ['system:masters'],
  'x-remote-extra-a': ['b'],
  x_remote_user: 'root',
  'x_remote-group': 'system:masters',
  x_remote_extra_a: 'b',
  impersonate_user: 'root',
  'x-user': 'root',
  x_user: 'root',
  'x-team-a': 'b',
  authorization: 'Bearer t',
}
const request = {
  ...{ method: 'GET', path: '/', remoteAddress: '', cancellation: { signal: new AbortController().signal } },
  headers: { ...forged, upgrade: 'websocket', connection: 'Upgrade, X-Kept-Not', 'x-kept-not': '1', x_kept: 'yes' },
}

for (const [what, headers] of [
  ['a request', requestHeaders],
  ['an upgrade', upgradeHeaders],
] as const) {
  test(`API-28 ${what} names one identity to a backend: no header of the client does, in any spelling`, () => {
    const sent = headers(request as never, backend)
    assert.deepEqual(sent['x-remote-user'], ['alice'])
    for (const name of Object.keys(forged)) if (name !== 'x-remote-user') assert.equal(sent[name], undefined, name)
    assert.deepEqual([sent.x_kept, sent['x-kept-not']], ['yes', undefined])
  })
}
