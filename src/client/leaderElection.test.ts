import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '#api/gen/types/coordination.v1'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { HistoryTransport } from '#testing/historyTransport'
import { createClient } from './clientOverTransport.ts'
import { runLeaderElected } from './leaderElection.ts'

function candidate(server: HistoryTransport, clock: VirtualClock, identity: string, leaders: string[], options: { releaseOnCancel?: boolean } = {}) {
  const stop = new AbortController()
  /** A network of its own, that can be cut. */
  const own = { cut: false }
  const client = createClient({
    request: (request) => (own.cut ? Promise.reject(new Error('no route')) : server.request(request)),
    watch: (request, signal) => server.watch(request, signal),
  })
  const lead = async (signal: AbortSignal) => {
    leaders.push(identity)
    assert.equal(leaders.length, 1, 'never two leaders')
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    leaders.splice(leaders.indexOf(identity), 1)
  }
  const deps = { client, clock, random: seededRandom(identity.length), log: noLog }
  const done = runLeaderElected(deps, { lock: { namespace: 'kube-system', name: 'l' }, identity, ...options }, lead, stop.signal).then(
    () => 'ended',
    (error: Error) => error.message,
  )
  return { done, own, stop: () => stop.abort(new Error('stop')) }
}
const spec = (server: HistoryTransport) => (server.objects()[0] as unknown as Lease).spec

test('CGO-08 CTL-21 one leads; when it is cut off it stops first, and the other takes over within 15 s and a retry', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const leaders: string[] = []
  const a = candidate(server, clock, 'a', leaders)
  await clock.advance(0)
  const b = candidate(server, clock, 'bb', leaders)
  await clock.advance(60_000)
  assert.deepEqual(leaders, ['a'])
  assert.equal(spec(server)?.leaseTransitions, 0)
  a.own.cut = true
  await clock.advance(10_000)
  assert.deepEqual(leaders, [], 'it stopped at its renew deadline, before the lease ran out')
  assert.equal(await a.done, 'leaderelection lost')
  await clock.advance(10_000)
  assert.deepEqual(leaders, ['bb'])
  assert.deepEqual([spec(server)?.holderIdentity, spec(server)?.leaseTransitions], ['bb', 1])
  b.stop()
  assert.equal(await b.done, 'ended')
})

test('CGO-08 a leader that releases lets the next start at its next try', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const leaders: string[] = []
  const a = candidate(server, clock, 'a', leaders, { releaseOnCancel: true })
  await clock.advance(0)
  const b = candidate(server, clock, 'bb', leaders)
  await clock.advance(1_000)
  a.stop()
  assert.equal(await a.done, 'ended')
  assert.equal(spec(server)?.holderIdentity, '')
  await clock.advance(5_000)
  assert.deepEqual(leaders, ['bb'])
  b.stop()
  await b.done
})
