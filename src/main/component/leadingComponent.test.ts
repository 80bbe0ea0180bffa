import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '#api/gen/types/coordination.v1'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { configMaps } from '#client/builtIn'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { LeadershipLostError } from '#client/fencedClient'
import { HistoryTransport } from '#testing/historyTransport'
import { createPrometheusMetrics } from '../prometheus.ts'
import { leadingComponent } from './leadingComponent.ts'
import { defaultLease } from './options/leaderElection.ts'

/** A server that has one component to run while it leads. */
function server(api: HistoryTransport, clock: VirtualClock, identity: string, isAlone = false) {
  const events: string[] = []
  const own = { cut: false }
  const client = createClient({
    request: (request) => (own.cut ? Promise.reject(new Error('no route')) : api.request(request)),
    watch: (request, signal) => api.watch(request, signal),
  })
  const stop = new AbortController()
  let fenced: Client | undefined
  let fail = (_: Error) => {}
  const tools = { clock, random: seededRandom(identity.length), log: noLog, metrics: createPrometheusMetrics() }
  const lease = { ...defaultLease('work'), leaderElect: !isAlone }
  const component = leadingComponent({ name: 'work', client, tools, lease, identity }, async (fence, signal) => {
    fenced = fence(client)
    events.push('begins')
    await new Promise<void>((resolve, reject) => {
      fail = reject
      signal.addEventListener('abort', () => resolve(), { once: true })
    }).finally(() => events.push('ends'))
  })
  const run = () =>
    component.run(stop.signal).then(
      () => 'ended',
      (error: Error) => error.message,
    )
  const write = () => fenced?.of(configMaps).create({ metadata: { namespace: 'default', name: identity } }) as Promise<unknown>
  return { events, own, run, write, fail: (error: Error) => fail(error), stop: () => stop.abort(new Error('stop')) }
}

const holder = (api: HistoryTransport) => (api.objects()[0] as unknown as Lease).spec?.holderIdentity

test('HA-04 a server that loses the lease ends its work, writes nothing more, and works again when it gets the lease back', async () => {
  const api = new HistoryTransport()
  const clock = new VirtualClock()
  const one = server(api, clock, 'one')
  const first = one.run()
  await clock.advance(0)
  assert.deepEqual(one.events, ['begins'])
  one.own.cut = true
  await clock.advance(10_000)
  assert.equal(await first, 'leaderelection lost')
  assert.deepEqual(one.events, ['begins', 'ends'])
  await assert.rejects(one.write(), LeadershipLostError)
  one.own.cut = false
  const second = one.run()
  await clock.advance(20_000)
  assert.deepEqual(one.events, ['begins', 'ends', 'begins'])
  one.stop()
  assert.equal(await second, 'ended')
})

test('HA-04 a server that starts again under its identity works at once, another one waits until the lease has expired', async () => {
  const api = new HistoryTransport()
  const clock = new VirtualClock()
  const former = server(api, clock, 'one')
  void former.run()
  await clock.advance(1000)
  // It died: its lease is not released.
  former.own.cut = true
  const [again, other] = [server(api, clock, 'one'), server(api, clock, 'other')]
  void other.run()
  void again.run()
  await clock.advance(0)
  assert.deepEqual([again.events, other.events], [['begins'], []])
  again.stop()
  await clock.advance(5000)
  assert.deepEqual([again.events, other.events, holder(api)], [['begins', 'ends'], ['begins'], 'other'])
  other.stop()
  former.stop()
})

test('HA-04 a server whose work fails gives the lease up, and the failure is known', async () => {
  const api = new HistoryTransport()
  const clock = new VirtualClock()
  const one = server(api, clock, 'one')
  const running = one.run()
  await clock.advance(0)
  one.fail(new Error('out of luck'))
  assert.equal(await running, 'out of luck')
  assert.deepEqual([one.events, holder(api)], [['begins', 'ends'], ''])
})

test('HA-04 the only server works without a lease', async () => {
  const api = new HistoryTransport()
  const one = server(api, new VirtualClock(), 'one', true)
  const running = one.run()
  await new Promise(setImmediate)
  assert.deepEqual([one.events, api.objects()], [['begins'], []])
  one.stop()
  assert.equal(await running, 'ended')
  assert.deepEqual(one.events, ['begins', 'ends'])
})
