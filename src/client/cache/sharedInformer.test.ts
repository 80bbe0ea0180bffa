import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { pods } from '../builtIn.ts'
import { createClient } from '../clientOverTransport.ts'
import { createSharedInformer, type SharedInformer } from './sharedInformer.ts'
import { createSharedInformerFactory } from './sharedInformerFactory.ts'

const pathOf = (name: string) => `/api/v1/namespaces/x/pods/${name}`
const put = (server: HistoryTransport, name: string, value = 0) => server.put(pathOf(name), anObject('Pod', { namespace: 'x', name }, { value }))

interface Setup {
  server: HistoryTransport
  clock: VirtualClock
  informer: SharedInformer<never>
  heard: string[]
  stop: () => Promise<void>
}

async function start(server = new HistoryTransport()): Promise<Setup> {
  const clock = new VirtualClock()
  const informer = createSharedInformer(createClient(server).of(pods), { clock, random: seededRandom(1), log: noLog })
  const heard: string[] = []
  informer.addHandler({
    onAdd: (object, initial) => heard.push(`add ${object.metadata.name}${initial ? ' initially' : ''}`),
    onUpdate: (_, object) => heard.push(`update ${object.metadata.name}`),
    onDelete: (object, unknown) => heard.push(`delete ${object.metadata.name}${unknown ? ' unseen' : ''}`),
  })
  const stopping = new AbortController()
  const done = informer.run(stopping.signal)
  await clock.advance(0)
  const stop = async () => {
    stopping.abort()
    await done
  }
  return { server, clock, informer: informer as unknown as SharedInformer<never>, heard, stop }
}

test('CGO-01 the first state is streamed, then changes arrive in order on the same watch', async () => {
  const server = new HistoryTransport()
  put(server, 'a')
  const { clock, heard, informer, stop } = await start(server)
  assert.equal(informer.hasSynced(), true)
  put(server, 'b')
  put(server, 'a', 1)
  server.remove(pathOf('b'))
  await clock.advance(0)
  assert.deepEqual(heard, ['add a initially', 'add b', 'update a', 'delete b'])
  assert.equal(informer.store.get('x/a'), server.objects()[0], 'shared by reference')
  assert.equal(server.requests.length, 1)
  await stop()
})

test('CGO-01 a server that cannot stream the first state is asked for a list, from "0"', async () => {
  const server = new HistoryTransport()
  server.intercept = (request) => {
    if (request.query?.sendInitialEvents)
      throw new StatusError('Invalid', 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled')
  }
  put(server, 'a')
  const { heard, stop } = await start(server)
  assert.deepEqual(heard, ['add a initially'])
  assert.deepEqual(
    server.requests.map(({ query }) => query?.resourceVersion),
    ['', '0', '2'],
  )
  await stop()
})

test('CGO-01 a broken watch resumes from the last version; an expired one starts over from the latest', async () => {
  const { server, clock, heard, stop } = await start()
  put(server, 'a')
  put(server, 'b')
  await clock.advance(0)
  server.endWatches(new Error('connection reset'))
  put(server, 'c')
  await clock.advance(5_000)
  assert.deepEqual(heard, ['add a', 'add b', 'add c'])
  assert.equal(server.requests[1]?.query?.resourceVersion, '4')
  server.endWatches(new Error('connection reset'))
  await clock.advance(0)
  put(server, 'a', 1)
  server.remove(pathOf('b'))
  server.compact()
  await clock.advance(10_000)
  assert.deepEqual(heard.slice(3), ['update a', 'update c', 'delete b unseen'])
  assert.equal(server.requests.at(-1)?.query?.resourceVersion, '')
  await stop()
})

test('CGO-01 waits grow from 0.8 s towards 30 s while the server is away', async () => {
  const server = new HistoryTransport()
  const at: number[] = []
  server.intercept = () => {
    at.push(clockOf())
    throw new Error('connection refused')
  }
  let clockOf = () => 0
  const clock = new VirtualClock(0)
  clockOf = () => clock.now()
  const informer = createSharedInformer(createClient(server).of(pods), { clock, random: { next: () => 0, int: () => 0 }, log: noLog })
  const stopping = new AbortController()
  const done = informer.run(stopping.signal)
  await clock.advance(100_000)
  assert.deepEqual(
    at.slice(1).map((ms, i) => ms - (at[i] ?? 0)),
    [800, 1600, 3200, 6400, 12_800, 25_600, 30_000],
  )
  stopping.abort()
  await done
})

test('CGO-01 a watch that outlives its time-out is given up', async () => {
  const { server, clock, stop } = await start()
  await clock.advance(700_000)
  assert.equal(server.requests.length >= 2, true)
  assert.equal(server.requests[1]?.query?.sendInitialEvents, undefined)
  await stop()
})

test('CGO-04 a handler that is added late gets the current state, a removed one gets nothing, a failing one does not affect the others', async () => {
  const { server, clock, informer, heard, stop } = await start()
  put(server, 'a')
  await clock.advance(0)
  const late: string[] = []
  informer.addHandler({
    onAdd: () => {
      throw new Error('fault')
    },
  })
  const registration = informer.addHandler({ onAdd: (object: Frozen<KubeObject>) => late.push(keyOf(object)) })
  put(server, 'b')
  await clock.advance(0)
  registration.remove()
  put(server, 'c')
  await clock.advance(0)
  assert.deepEqual(late, ['x/a', 'x/b'])
  assert.deepEqual(heard, ['add a', 'add b', 'add c'])
  await stop()
})

test('CGO-04 one watch per resource and selector; resync repeats what is there', async () => {
  const server = new HistoryTransport()
  put(server, 'a')
  const clock = new VirtualClock()
  const factory = createSharedInformerFactory(createClient(server), { clock, random: seededRandom(1), log: noLog })
  const stopping = new AbortController()
  const done = factory.run(stopping.signal)
  let resynced = 0
  const count = (old: unknown, object: unknown) => {
    if (old === object) resynced++
  }
  factory.of(pods).addHandler({ onUpdate: count }, { resyncPeriodMs: 1000 })
  assert.equal(factory.of(pods), factory.of(pods))
  assert.notEqual(factory.of(pods), factory.of(pods, { labelSelector: 'a=b' }))
  await factory.synced(stopping.signal)
  await clock.advance(3_500)
  assert.equal(server.requests.length, 2)
  assert.equal(resynced, 3)
  stopping.abort()
  await done
})

for (const how of ['streamed', 'listed'] as const) {
  test(`CGO-01 CGO-02 handlers get a history that leads to the state of the server, after any faults (${how})`, () => anyHistory(how))
}

/** Random writes, ended and broken watches, compactions and refused requests, at random distances in time. */
async function anyHistory(how: 'streamed' | 'listed'): Promise<void> {
  const action = fc.oneof(
    { weight: 6, arbitrary: fc.tuple(fc.constant('put' as const), fc.constantFrom('a', 'b', 'c')) },
    { weight: 3, arbitrary: fc.tuple(fc.constant('remove' as const), fc.constantFrom('a', 'b', 'c')) },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.constantFrom('end' as const, 'break' as const, 'compact' as const, 'refuse' as const), fc.constant('')),
    },
    { weight: 4, arbitrary: fc.tuple(fc.constant('wait' as const), fc.constantFrom('10', '60000')) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 25 }), async (actions) => {
      const server = new HistoryTransport()
      let refusals = 0
      server.intercept = (request) => {
        if (how === 'listed' && request.query?.sendInitialEvents) throw new StatusError('Invalid', 'sendInitialEvents is forbidden')
        if (refusals > 0 && refusals-- > 0) throw refusals % 2 ? new StatusError('TooManyRequests', 'busy') : new Error('connection refused')
      }
      const { clock, informer, stop } = await start(server)
      const model = new Map<string, unknown>()
      informer.addHandler({
        onAdd: (object: Frozen<KubeObject>) => {
          assert.equal(model.has(keyOf(object)), false)
          model.set(keyOf(object), object)
        },
        onUpdate: (old: Frozen<KubeObject>, object: Frozen<KubeObject>) => {
          assert.equal(model.get(keyOf(object)), old)
          model.set(keyOf(object), object)
        },
        onDelete: (object: Frozen<KubeObject>) => assert.equal(model.delete(keyOf(object)), true),
      })
      for (const [what, name] of actions) {
        if (what === 'put') put(server, name)
        else if (what === 'remove') server.remove(pathOf(name))
        else if (what === 'end') server.endWatches()
        else if (what === 'break') server.endWatches(new Error('reset'))
        else if (what === 'compact') server.compact()
        else if (what === 'refuse') refusals += 2
        else await clock.advance(Number(name))
      }
      await clock.advance(1_500_000)
      const wanted = new Map(server.objects().map((object) => [keyOf(object), object]))
      assert.deepEqual(new Map([...model].sort()), new Map([...wanted].sort()))
      assert.equal(informer.store.size, wanted.size)
      await stop()
    }),
    { numRuns: 200 },
  )
}
