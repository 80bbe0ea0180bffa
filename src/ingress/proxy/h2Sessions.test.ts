/** How long connections to endpoints in HTTP/2 are kept, against real endpoints. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { createH2Sessions } from './h2Sessions.ts'

const inClearText = (): never => {
  throw new Error('no policy asks for TLS')
}

async function startEndpoint(t: TestContext, maxConcurrentStreams = 100) {
  const open = new Set<ServerHttp2Session>()
  const server = createServer({ settings: { maxConcurrentStreams } })
  server.on('session', (session) => {
    open.add(session)
    session.once('close', () => open.delete(session)).on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { open, endpoint: { ip: '127.0.0.1', port: (server.address() as AddressInfo).port } as never }
}

test('ING-02 a connection without requests is closed after a minute, whatever its endpoint sends', async (t) => {
  const { open, endpoint } = await startEndpoint(t)
  const clock = new VirtualClock()
  const sessions = createH2Sessions(clock, 1000, inClearText)
  t.after(() => sessions.close())
  const { session, release } = await sessions.take(endpoint)
  await clock.advance(120_000)
  assert.ok(!session.closed, 'a request keeps it open')
  release()
  await clock.advance(59_000)
  for (const one of open) one.origin('http://a.example.com')
  // The answer to a ping comes after the frames that were sent before.
  await new Promise((resolve) => session.ping(resolve))
  assert.ok(!session.closed)
  const closed = once(session, 'close')
  await clock.advance(2_000)
  await closed
})

test('ING-02 of all connections without requests the 256 that had one last are kept', async (t) => {
  const clock = new VirtualClock()
  const sessions = createH2Sessions(clock, 60_000, inClearText)
  t.after(() => sessions.close())
  const endpoints = await Promise.all(Array.from({ length: 10 }, () => startEndpoint(t, 1)))
  const taken = await Promise.all(endpoints.flatMap(({ endpoint }) => Array.from({ length: 30 }, () => sessions.take(endpoint))))
  const distinct = new Set(taken.map(({ session }) => session))
  assert.equal(distinct.size, 300)
  for (const { release } of taken) release()
  assert.equal([...distinct].filter(({ closed }) => !closed).length, 256)
})
