import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import type { TokenResult } from './tokenAuthenticator.ts'
import { cachedTokens } from './tokenCache.ts'

const user = { name: 'jane', groups: [] }

function counted(cachesErrors: boolean, failureTtlMs: number) {
  const clock = new VirtualClock()
  const asked: string[] = []
  const authenticator = {
    name: 'test',
    authenticateToken(token: string, audiences: readonly string[]): Promise<TokenResult> | TokenResult {
      asked.push(`${token} ${audiences}`)
      if (token === 'good') return Promise.resolve({ decision: 'authenticated', user, audiences })
      return token === 'bad' ? { decision: 'rejected', reason: 'no' } : undefined
    },
  }
  return { clock, asked, cache: cachedTokens(authenticator, { clock, metrics: noMetrics, successTtlMs: 10_000, failureTtlMs, cachesErrors }) }
}

test('a good token is checked once per cache period, and once for concurrent requests', async () => {
  const { clock, asked, cache } = counted(false, 0)
  const [first, second] = await Promise.all([cache.authenticateToken('good', ['a']), cache.authenticateToken('good', ['a'])])
  assert.deepEqual([first, second], [{ decision: 'authenticated', user, audiences: ['a'] }, first])
  await cache.authenticateToken('good', ['a'])
  assert.deepEqual(asked, ['good a'])
  await cache.authenticateToken('good', ['b'])
  await cache.authenticateToken('good', ['a', 'b'])
  assert.deepEqual(asked, ['good a', 'good b', 'good a,b'])
  await clock.advance(10_000)
  await cache.authenticateToken('good', ['a'])
  assert.equal(asked.length, 4)
})

const failures: { name: string; token: string; cachesErrors: boolean; ttlMs: number; asked: number }[] = [
  { name: 'a refusal', token: 'bad', cachesErrors: false, ttlMs: 5000, asked: 2 },
  { name: 'a refusal, where errors count', token: 'bad', cachesErrors: true, ttlMs: 5000, asked: 1 },
  { name: 'an unknown token', token: 'other', cachesErrors: false, ttlMs: 5000, asked: 1 },
  { name: 'a failure, where failures are not cached', token: 'other', cachesErrors: true, ttlMs: 0, asked: 2 },
]
for (const { name, token, cachesErrors, ttlMs, asked: want } of failures) {
  test(`a token is looked up ${want} times: ${name}`, async () => {
    const { asked, cache } = counted(cachesErrors, ttlMs)
    const first = await cache.authenticateToken(token, ['a'])
    assert.deepEqual(await cache.authenticateToken(token, ['a']), first)
    assert.equal(asked.length, want)
  })
}
