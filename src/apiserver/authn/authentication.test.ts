import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import type { Transport } from '#client/transport'
import { Cancellation } from '../core/cancellation.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import type { ServerRequest } from '../core/request.ts'
import { signToken } from '../tokens/jwt.ts'
import { signingKey } from '../tokens/keys.ts'
import { createAuthentication } from './authentication.ts'
import { defaultAuthentication } from './settings.ts'

/** Requests with a good token whose account is not in the cache. */
function world(waitUntilCurrent: () => Promise<void>) {
  const clock = new VirtualClock()
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const serviceAccountKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const reader = { get: () => undefined, list: () => [], onChange: () => () => {} } as unknown as ObjectReader
  const deps = { reader, waitUntilCurrent, clock, random: seededRandom(1), log: noLog, metrics: noMetrics, serviceAccountKey }
  const authentication = createAuthentication(deps, defaultAuthentication)
  const own = { requests: 0 }
  authentication.connect({ request: async () => void own.requests++ } as unknown as Transport)
  const now = clock.now() / 1000
  const issuer = defaultAuthentication.serviceAccounts.issuers[0] ?? ''
  const [subject, account] = ['system:serviceaccount:ns:app', { namespace: 'ns', serviceaccount: { name: 'app', uid: 'u' } }]
  const claims = { aud: authentication.apiAudiences, exp: now + 600, iat: now, nbf: now, iss: issuer, jti: 'j', sub: subject, 'kubernetes.io': account }
  const headers = { authorization: `Bearer ${signToken(claims as Parameters<typeof signToken>[0], signingKey(serviceAccountKey))}` }
  const ask = async (cancellation = new Cancellation()) => {
    const request = { headers, warnings: [], cancellation } as unknown as ServerRequest
    return (await authentication.authenticators[0]?.authenticate(request))?.decision
  }
  return { ask, own }
}

test('AUN-03 requests with the token of a deleted account cost the server no request of its own, and share their waits', async () => {
  let waits = 0
  const { ask, own } = world(async () => {
    waits++
    await new Promise((resolve) => setImmediate(resolve))
  })
  const decisions = await Promise.all(Array.from({ length: 100 }, () => ask()))
  assert.deepEqual([new Set(decisions), own.requests, waits], [new Set(['rejected']), 0, 1])
})

test('AUN-03 a request with the token of a deleted account waits no longer than its client', async () => {
  const { ask } = world(() => new Promise(() => {}))
  const cancellation = new Cancellation()
  const asked = ask(cancellation)
  setImmediate(() => cancellation.abort(new Error('the client left')))
  assert.equal(await asked, 'rejected')
})
