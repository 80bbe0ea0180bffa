import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '#api/gen/types/coordination.v1'
import { noLog } from '#base/log'
import { type Metrics, noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { HistoryTransport } from '#testing/historyTransport'
import { configMaps } from './builtIn.ts'
import { createClient } from './clientOverTransport.ts'
import { LeadershipLostError } from './fencedClient.ts'
import { type Leadership, runLeaderElected } from './leaderElection.ts'

function candidate(server: HistoryTransport, clock: VirtualClock, identity: string, leaders: string[], options: { releaseOnCancel?: boolean } = {}) {
  const stop = new AbortController()
  /** A client whose network can be cut. */
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

/** A leader whose lease calls can be cut off while its other calls go through. */
async function fenced() {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const statuses: number[] = []
  const gauge = { ...noMetrics.gauge({ name: '', help: '' }), series: () => ({ set: (value: number) => void statuses.push(value), add: () => {} }) }
  const metrics: Metrics = { ...noMetrics, gauge: () => gauge }
  const hang = { leases: false, others: false }
  const client = createClient({
    request: (request, signal) => {
      const hangs = request.path.includes('/leases') ? hang.leases : hang.others
      if (!hangs) return server.request(request)
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }))
    },
    watch: (request, signal) => server.watch(request, signal),
  })
  let leadership: Leadership | undefined
  const deps = { client, clock, random: seededRandom(1), log: noLog, metrics }
  const lead = async (signal: AbortSignal, mine: Leadership) => {
    leadership = mine
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  }
  const options = { lock: { namespace: 'kube-system', name: 'l' }, identity: 'me' }
  const done = runLeaderElected(deps, options, lead, new AbortController().signal).catch((error: Error) => error.message)
  await clock.advance(0)
  assert.ok(leadership)
  return { server, clock, hang, done, leadership, statuses, of: leadership.fence(client).of(configMaps) }
}
const aMap = (name: string) => ({ metadata: { namespace: 'x', name } })

test('HA-04 a lost leader writes nothing any more, reads on, and what it had under way is cut off', async () => {
  const { clock, hang, done, leadership, statuses, of } = await fenced()
  await of.create(aMap('a'))
  hang.leases = true
  await clock.advance(5_000)
  await of.create(aMap('b'))
  hang.others = true
  const underWay = of.create(aMap('c')).catch((error: unknown) => error)
  await clock.advance(5_000)
  hang.others = false
  assert.ok((await underWay) instanceof LeadershipLostError)
  assert.equal(await done, 'leaderelection lost')
  assert.equal(leadership.held(), false)
  await assert.rejects(of.create(aMap('d')), LeadershipLostError)
  assert.equal((await of.get({ namespace: 'x', name: 'a' })).metadata.name, 'a')
  await assert.rejects(of.get({ namespace: 'x', name: 'd' }))
  assert.deepEqual(statuses, [0, 1, 0])
})

test('HA-04 a process that slept through its lease refuses to write before it knows, counting from when it asked', async () => {
  const { clock, hang, leadership, of } = await fenced()
  hang.leases = true
  await clock.advance(9_999)
  assert.equal(leadership.held(), true)
  const nowMs = clock.monotonicMs.bind(clock)
  // No timer fires while a process is suspended, but time passes.
  clock.monotonicMs = () => nowMs() + 1
  assert.equal(leadership.held(), false)
  await assert.rejects(of.create(aMap('a')), /was not sent/)
})

test('HA-04 times that let two lead are refused', async () => {
  const { server, clock } = await fenced()
  const deps = { client: createClient(server), clock, random: seededRandom(1), log: noLog }
  const options = { lock: { namespace: 'x', name: 'l' }, identity: 'a' }
  const run = (times: object) => runLeaderElected(deps, { ...options, ...times }, async () => {}, AbortSignal.abort())
  await assert.rejects(run({ leaseDurationMs: 10_000 }), /leaseDuration must be greater than renewDeadline/)
  await assert.rejects(run({ retryPeriodMs: 9_000 }), /renewDeadline must be greater than retryPeriod\*JitterFactor/)
})

test('HA-04 the lease is released although the answer to a renewal was cut off, and the renewal has arrived', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const request = server.request.bind(server)
  let puts = 0
  const a = candidate(server, clock, 'a', [], { releaseOnCancel: true })
  server.request = async (asked) => {
    const answer = await request(asked)
    if (asked.method !== 'PUT' || ++puts > 1) return answer
    a.stop()
    throw new Error('the connection was lost')
  }
  await clock.advance(3_000)
  assert.equal(await a.done, 'ended')
  assert.equal(spec(server)?.holderIdentity, '')
})

test('HA-04 work that continues after the led function has ended cannot write, the lease is released', async () => {
  const client = createClient(new HistoryTransport())
  const clock = new VirtualClock()
  let abandoned: Leadership | undefined
  const stop = new AbortController()
  const lead = async (_signal: AbortSignal, leadership: Leadership) => {
    abandoned = leadership
  }
  const lock = { namespace: 'kube-system', name: 'l' }
  await runLeaderElected({ client, clock, random: seededRandom(1), log: noLog }, { lock, identity: 'a', releaseOnCancel: true }, lead, stop.signal)
  const write = abandoned
    ?.fence(client)
    .of(configMaps)
    .create({ metadata: { namespace: 'default', name: 'late' } }) as Promise<unknown>
  await assert.rejects(write, LeadershipLostError)
})
