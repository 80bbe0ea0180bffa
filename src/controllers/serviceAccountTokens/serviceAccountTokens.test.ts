import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Secret, ServiceAccount } from '#api/gen/types/core.v1'
import { legacyTokenDecision } from './legacyCleaner.ts'
import { wanted } from './tokens.ts'

const nowMs = Date.UTC(2026, 5, 1)
const yearMs = 365 * 86_400_000
const account: ServiceAccount = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'n', name: 'a', uid: 'u' }, secrets: [{ name: 's' }] }
const secret = (labels: Record<string, string> = {}, created = '2020-01-01T00:00:00Z', name = 's'): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'n', name, labels, creationTimestamp: created, annotations: { 'kubernetes.io/service-account.name': 'a' } },
  type: 'kubernetes.io/service-account-token',
})
const used = 'kubernetes.io/legacy-token-last-used'
const invalid = 'kubernetes.io/legacy-token-invalid-since'
const decisions = [
  { name: 'never used', object: secret(), want: 'mark' },
  { name: 'young', object: secret({}, '2026-05-01T00:00:00Z'), want: 'keep' },
  { name: 'used within the year', object: secret({ [used]: '2025-07-01' }), want: 'keep' },
  { name: 'used before', object: secret({ [used]: '2024-07-01' }), want: 'mark' },
  { name: 'a label that is no day', object: secret({ [used]: 'yesterday' }), want: 'keep' },
  { name: 'marked lately', object: secret({ [invalid]: '2026-01-01' }), want: 'keep' },
  { name: 'marked a year ago', object: secret({ [invalid]: '2025-01-01' }), want: 'delete' },
  { name: 'made by hand', object: secret({}, undefined, 'other'), want: 'keep' },
]
for (const { name, object, want } of decisions) {
  test(`CTL-13 unused tokens: ${name}`, () => assert.equal(legacyTokenDecision(object, account, nowMs, yearMs), want))
}
test('CTL-13 unused tokens: the token of another account is kept', () => {
  assert.equal(legacyTokenDecision(secret(), { ...account, metadata: { ...account.metadata, name: 'b' } }, nowMs, yearMs), 'keep')
  assert.equal(legacyTokenDecision(secret(), undefined, nowMs, yearMs), 'keep')
})

test('CTL-13 a token secret lacks what is missing or no longer right', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const bare = secret()
  assert.deepEqual(wanted(bare, account, 'CA'), { token: true, data: { 'ca.crt': base64('CA'), namespace: base64('n') } })
  const annotations = { ...bare.metadata.annotations, 'kubernetes.io/service-account.uid': 'u' }
  const full = { ...bare, metadata: { ...bare.metadata, annotations }, data: { token: 'x', 'ca.crt': base64('CA'), namespace: base64('n') } }
  assert.equal(wanted(full, account, 'CA'), undefined)
  assert.deepEqual(wanted(full, account, 'new CA'), { token: false, data: { 'ca.crt': base64('new CA') } })
  assert.deepEqual(wanted({ ...full, metadata: bare.metadata }, account, 'CA'), { token: false, data: {} })
})
