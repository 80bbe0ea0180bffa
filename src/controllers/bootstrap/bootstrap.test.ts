import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import type { Secret } from '#api/gen/types/core.v1'
import { signingToken, tokenExpiryMs } from './bootstrapToken.ts'
import { detachedSignature } from './signer.ts'

const nowMs = Date.UTC(2026, 0, 1)
const token = (data: Record<string, string>, name = 'bootstrap-token-abcdef'): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'kube-system', name },
  type: 'bootstrap.kubernetes.io/token',
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
})
const good = { 'token-id': 'abcdef', 'token-secret': 's3cret', 'usage-bootstrap-signing': 'true' }
const cases = [
  { name: 'good', object: token(good), signs: true },
  { name: 'named otherwise', object: token(good, 'bootstrap-token-other1'), signs: false },
  { name: 'not for signing', object: token({ ...good, 'usage-bootstrap-signing': 'false' }), signs: false },
  { name: 'over', object: token({ ...good, expiration: '2025-12-31T00:00:00Z' }), signs: false },
  { name: 'not over', object: token({ ...good, expiration: '2026-01-01T00:00:01Z' }), signs: true },
  { name: 'with a time that is none', object: token({ ...good, expiration: 'soon' }), signs: false },
  { name: 'without a secret', object: token({ ...good, 'token-secret': '' }), signs: false },
]
for (const { name, object, signs } of cases) {
  test(`CTL-19 a bootstrap token that is ${name}`, () => assert.deepEqual(signingToken(object, nowMs), signs ? { id: 'abcdef', secret: 's3cret' } : undefined))
}
test('CTL-19 a token without an end does not end', () => assert.equal(tokenExpiryMs(token(good)), undefined))

test('CTL-19 the signature is a JSON Web Signature with detached content', () => {
  const [header = '', content, signature] = detachedSignature('hello', 'abcdef', 's3cret').split('.')
  assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'HS256', kid: 'abcdef' })
  assert.equal(content, '')
  assert.equal(signature, createHmac('sha256', 's3cret').update(`${header}.aGVsbG8`).digest('base64url'))
})
