/**
 * Priority and fairness at the real port: one tenant floods at full speed and is refused, the other is served. Latency is not asserted: it depends
 * on the machine, and the benchmark measures it.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { connectHttp2, type Http2Connection } from '../../../bench/tools/http2Connection.ts'
import { alicesPath, type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

/** A connection begins eight requests per turn of the server's loop: more than all seats and queues of a flow need many. */
const connections = 80
const inFlightEach = 20
const roundMs = 1_000
const mostRounds = 30
const wantedAnswers = 50
const refusedMs = 60_000

const bobs: Http2Connection[] = []
let server: ServerUnderAttack
before(async () => {
  server = await startServerUnderAttack()
  const apiGroup = 'rbac.authorization.k8s.io'
  const subjects = [{ apiGroup, kind: 'User', name: 'bob' }]
  const binding = { metadata: { name: 'bob' }, roleRef: { apiGroup, kind: 'Role', name: 'reader' }, subjects }
  const { status } = await server.as('admin', 'POST', `/apis/${apiGroup}/v1/namespaces/default/rolebindings`, binding)
  assert.equal(status, 201)
  const target = { host: '127.0.0.1', port: server.port, ca: server.ca }
  for (let i = 0; i < connections; i++) bobs.push(await connectHttp2(target))
})
after(async () => {
  for (const connection of bobs) connection.close()
  await server.stop()
})

/** Bob asks as fast as he is answered. How often each status was the answer. */
async function flood(ms: number): Promise<ReadonlyMap<number, number>> {
  const until = performance.now() + ms
  const counts = new Map<number, number>()
  const one = async (connection: Http2Connection) => {
    while (performance.now() < until) {
      const { status } = await connection.request({ method: 'GET', path: alicesPath, headers: { authorization: 'Bearer bob' } })
      counts.set(status, (counts.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(bobs.flatMap((connection) => Array.from({ length: inFlightEach }, () => one(connection))))
  return counts
}

test('API-18 a tenant that floods is refused, and another is served meanwhile', { timeout: 90_000 }, async (t) => {
  let answered = 0
  let refused = 0
  for (let round = 0; round < mostRounds && (answered < wantedAnswers || refused === 0); round++) {
    let counts: ReadonlyMap<number, number> = new Map()
    const { p99, requests } = await server.beside(async () => {
      counts = await flood(roundMs)
    })
    answered += requests
    refused += counts.get(429) ?? 0
    t.diagnostic(`${requests} answers beside ${[...counts].map(([status, count]) => `${count} of ${status}`).join(', ')}; p99 ${p99.toFixed(1)} ms`)
    const strange = [...counts.keys()].filter((status) => status !== 200 && status !== 429)
    assert.deepEqual(strange, [])
    // The bystander counts an answer that is none, a refusal among them, as a minute.
    assert.ok(p99 < refusedMs, 'who does not flood is not refused')
  }
  assert.ok(refused > 0, 'the flood is told to come back later')
  assert.ok(answered >= wantedAnswers, `only ${answered} answers beside the flood`)
})
