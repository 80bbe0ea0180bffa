/** An API server with authorization and admission, and requests with the header that asks for their trace. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { ExplainedRequest, TraceList } from '#api/debug/traces'
import { isStatus } from '#api/machinery/status'
import type { UserInfo } from '#apiserver/core/request'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import type { Transport } from '#client/transport'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

export const authenticated = 'system:authenticated'
export const bob: UserInfo = { name: 'bob', groups: [authenticated] }
export const admin: UserInfo = { name: 'admin', groups: ['system:masters', authenticated] }

export async function startExplained(t: Pick<TestContext, 'after'>): Promise<TestApiServer> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const serviceAccountKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const api = await startTestApiServer({
    deps: ({ reader }) => createSecurity({ reader, clock: realClock, random: seededRandom(3), serviceAccountKey }),
  })
  t.after(() => api.close())
  return api
}

/** The newest record that the user may read of their own requests. */
export async function lastOf(transport: Transport): Promise<ExplainedRequest> {
  const { body } = await transport.request({ method: 'GET', path: '/skiff/traces', query: { last: '1' } })
  const [last] = (body as TraceList).requests
  assert.ok(last)
  return last
}

/** The refusal of a request that must fail. */
export async function refusedWith(code: number, call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error: unknown) => isStatus(error) && error.code === code)
}
