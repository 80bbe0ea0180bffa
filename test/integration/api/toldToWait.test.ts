/** After a 429, the server pauses reading the connection for a while: refusals take time, too. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { tooManyRequests } from '#api/machinery/status'
import type { Authorizer } from '#apiserver/authz/authorizer'
import { startTestApiServer } from '#testing/apiServer'
import { connectHttp2 } from '../../../bench/tools/http2Connection.ts'

/** Timers may fire a little before their time. */
const leastMs = 19

test('API-18 a client that ignores Retry-After is read once in 20 ms, and answered in the end', { timeout: 60_000 }, async () => {
  let startedMs = 0
  const refusedMs: number[] = []
  const authorize: Authorizer['authorize'] = ({ resource }) => {
    if (resource !== 'configmaps') return { decision: 'allow', reason: '' }
    refusedMs.push(performance.now() - startedMs)
    throw tooManyRequests('busy', 1)
  }
  const api = await startTestApiServer({ deps: () => ({ authorizers: [{ name: 'busy', authorize }] }) })
  const { port, ca, token } = await api.listen()
  const connection = await connectHttp2({ host: '127.0.0.1', port, ca })
  try {
    refusedMs.length = 0
    startedMs = performance.now()
    const ask = () => connection.request({ method: 'GET', path: '/api/v1/namespaces/default/configmaps/a', headers: { authorization: `Bearer ${token}` } })
    const answers = await Promise.all(Array.from({ length: 5 }, ask))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [429, 429, 429, 429, 429],
    )
    assert.equal(refusedMs.length, 5)
    for (const [i, ms] of refusedMs.entries()) assert.ok(ms >= i * leastMs, `refusal ${i} after ${ms} ms`)
  } finally {
    connection.close()
    await api.close()
  }
})
