import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { ObjectReader } from '../core/objectReader.ts'
import { bootstrapTokenAuthenticator } from './bootstrapToken.ts'

const token = 'abcdef.0123456789abcdef'
const good = { 'token-id': 'abcdef', 'token-secret': '0123456789abcdef', 'usage-bootstrap-authentication': 'true' }

const cases: readonly { name: string; data?: Record<string, string>; type?: string; token?: string; groups: readonly string[] | undefined }[] = [
  { name: 'a good token', groups: ['system:bootstrappers', 'system:authenticated'] },
  {
    name: 'extra groups',
    data: { 'auth-extra-groups': 'system:bootstrappers:b,system:bootstrappers:a' },
    groups: ['system:bootstrappers', 'system:bootstrappers:a', 'system:bootstrappers:b', 'system:authenticated'],
  },
  { name: 'not a bootstrapper group', data: { 'auth-extra-groups': 'system:masters' }, groups: undefined },
  { name: 'the wrong secret', token: 'abcdef.0123456789abcdee', groups: undefined },
  { name: 'another form', token: 'abcdef.0123', groups: undefined },
  { name: 'expired', data: { expiration: '2025-12-31T00:00:00Z' }, groups: undefined },
  { name: 'not yet expired', data: { expiration: '2026-12-31T00:00:00Z' }, groups: ['system:bootstrappers', 'system:authenticated'] },
  { name: 'an unreadable expiry', data: { expiration: 'soon' }, groups: undefined },
  { name: 'not for authentication', data: { 'usage-bootstrap-authentication': 'false' }, groups: undefined },
  { name: 'another type of secret', type: 'Opaque', groups: undefined },
]
for (const { name, data, type = 'bootstrap.kubernetes.io/token', groups, ...rest } of cases) {
  test(`bootstrap token: ${name}`, async () => {
    const encoded = Object.fromEntries(Object.entries({ ...good, ...data }).map(([key, value]) => [key, Buffer.from(value).toString('base64')]))
    const reader = { get: () => ({ metadata: {}, type, data: encoded }), list: () => [], onChange: () => () => {} } as unknown as ObjectReader
    const result = await bootstrapTokenAuthenticator(reader, new VirtualClock('2026-06-01T00:00:00Z'), ['api']).authenticateToken(rest.token ?? token, ['api'])
    assert.deepEqual(result?.decision === 'authenticated' ? result.user.groups : undefined, groups)
  })
}
