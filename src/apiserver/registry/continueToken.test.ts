import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeContinue, encodeContinue } from './continueToken.ts'

test('API-07 a token is upstream’s JSON in base64 and reads back', () => {
  const token = { revision: 17, start: 'default/a\0' }
  assert.equal(Buffer.from(encodeContinue(token), 'base64url').toString(), '{"v":"meta.k8s.io/v1","rv":17,"start":"default/a\\u0000"}')
  assert.deepEqual(decodeContinue(encodeContinue(token)), token)
})

const forged = [
  'x',
  '',
  '[]',
  '{"v":"meta.k8s.io/v2","rv":1,"start":"a"}',
  '{"v":"meta.k8s.io/v1","rv":0,"start":"a"}',
  '{"v":"meta.k8s.io/v1","rv":1,"start":""}',
  '{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}',
  '{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}',
  '{"v":"meta.k8s.io/v1","rv":1,"start":"./a"}',
  '{"v":"meta.k8s.io/v1","rv":1,"start":"a/"}',
  '{"v":"meta.k8s.io/v1","rv":1.5,"start":"a"}',
]
for (const text of forged) {
  test(`API-07 a forged token is refused: ${text || 'empty'}`, () => {
    assert.throws(() => decodeContinue(Buffer.from(text).toString('base64url')), /^StatusError: invalid continue token: continue key is not valid/)
  })
}
