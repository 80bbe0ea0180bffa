/** Which token a request bears, by header or subprotocol. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServerRequest } from '../core/request.ts'
import { bearerTokenAuthenticator } from './bearerToken.ts'

const cases: { name: string; headers: Record<string, string>; want: string | undefined; warns?: boolean }[] = [
  { name: 'none', headers: {}, want: undefined },
  { name: 'the usual', headers: { authorization: 'Bearer abc' }, want: 'abc' },
  { name: 'any case, spaces around, more after it', headers: { authorization: ' bEaReR abc def ' }, want: 'abc' },
  { name: 'two spaces', headers: { authorization: 'Bearer  abc' }, want: undefined, warns: true },
  { name: 'nothing after the scheme', headers: { authorization: 'Bearer ' }, want: undefined },
  { name: 'another scheme', headers: { authorization: 'Basic abc' }, want: undefined },
  { name: 'a scheme that only begins so', headers: { authorization: 'Bearerabc' }, want: undefined },
  { name: 'a subprotocol', headers: { 'sec-websocket-protocol': 'x, base64url.bearer.authorization.k8s.io.YWJj' }, want: 'abc' },
]
for (const { name, headers, want, warns = false } of cases) {
  test(name, async () => {
    const asked: string[] = []
    const authenticator = {
      name: 'test',
      authenticateToken(token: string) {
        asked.push(token)
        return undefined
      },
    }
    const request = { headers, warnings: [] as string[] } as unknown as ServerRequest
    const result = await bearerTokenAuthenticator([authenticator], ['a']).authenticate(request)
    assert.deepEqual(asked, want === undefined ? [] : [want])
    assert.deepEqual(result, want === undefined ? undefined : { decision: 'rejected', reason: 'invalid bearer token' })
    assert.equal(request.warnings.length > 0, warns)
  })
}

const faulty: readonly (readonly [name: string, protocols: string])[] = [
  ['two tokens', 'x, base64url.bearer.authorization.k8s.io.YWJj, base64url.bearer.authorization.k8s.io.YWJj'],
  ['an encoding with padding', 'x, base64url.bearer.authorization.k8s.io.YWI='],
  ['a token that is no UTF-8', 'x, base64url.bearer.authorization.k8s.io._w'],
  ['no other subprotocol', 'base64url.bearer.authorization.k8s.io.YWJj'],
]
for (const [name, protocols] of faulty) {
  test(`AUN-03 a subprotocol with a token is a wrong credential, not none, ${name}`, async () => {
    const authenticator = { name: 'test', authenticateToken: () => assert.fail('the token is not asked about') }
    const request = { headers: { 'sec-websocket-protocol': protocols }, warnings: [] } as unknown as ServerRequest
    const result = await bearerTokenAuthenticator([authenticator], ['a']).authenticate(request)
    assert.equal(result && 'decision' in result && result.decision, 'rejected')
  })
}
