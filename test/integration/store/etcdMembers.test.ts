/** The etcd driver against members that differ: in version, in cluster, or in what they answer. No etcd is needed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createEndpoints } from '#store/drivers/etcd/endpoints'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import type { Store, StoreError } from '#store/store'
import { realClock } from '#testing/realClock'
import { type FakeEtcd, type FakeEtcdOptions, type FakeWatch, startFakeEtcd } from '../../support/fakeEtcd.ts'
import { until } from '../../support/until.ts'

const bounded = { timeout: 60_000 }
const endings: (() => unknown)[] = []
after(async () => {
  for (const end of endings.reverse()) await end()
})

async function member(options: FakeEtcdOptions): Promise<FakeEtcd> {
  const started = await startFakeEtcd(options)
  endings.push(() => started.stop())
  return started
}

async function open(endpoints: readonly string[], clock = realClock): Promise<Store> {
  const store = await openEtcdStore({ endpoints, clock, random: seededRandom(1) })
  endings.push(() => store.close())
  return store
}

const put = (store: Store) => store.transact({ compare: [], success: [{ type: 'put', key: '/registry/a', value: Buffer.from('x') }] })
const portOf = ({ url }: FakeEtcd) => Number(new URL(url).port)

/** Keeps a watch open from revision 5 on, as the watch cache does: one that broke is opened again. */
function follow(store: Store): void {
  const stop = new AbortController()
  const run = async () => {
    while (!stop.signal.aborted) {
      await store.watch({ from: '/registry/', to: '/registry0', startRevision: 5 }, () => {}, stop.signal).catch(() => {})
      await realClock.sleep(20)
    }
  }
  const done = run()
  endings.push(() => {
    stop.abort()
    return done
  })
}

const createdWatch = async ({ watches }: FakeEtcd, count = 1): Promise<FakeWatch> => {
  await until('the watch is there', () => watches.length >= count && (watches.at(-1)?.requests.length ?? 0) > 0)
  return watches.at(-1) as FakeWatch
}
const keysOf = ({ requests: [first] }: FakeWatch) => {
  const { key, rangeEnd } = first?.createRequest ?? assert.fail('no watch was created')
  return key.equals(Buffer.from([0])) && rangeEnd.equals(Buffer.from([0])) ? 'all' : `${key}..${rangeEnd}`
}

test('ETC-19 a watch covers the range of keys alone, every member reports progress after events', bounded, async () => {
  const members = await Promise.all([member({ version: '3.5.13' }), member({ version: '3.6.1' })])
  follow(await open(members.map(({ url }) => url)))
  assert.equal(keysOf(await createdWatch(members[0] as FakeEtcd)), '/registry/../registry0')
})

test('ETC-19 a watch covers all keys, one member is older than the one that it is opened at', bounded, async () => {
  const members = await Promise.all([member({ version: '3.6.1' }), member({ version: '3.4.23' })])
  follow(await open(members.map(({ url }) => url)))
  assert.equal(keysOf(await createdWatch(members[0] as FakeEtcd)), 'all')
})

test('ETC-19 a watch covers all keys, the older member was unreachable when the store was opened', bounded, async () => {
  const first = await member({ version: '3.6.1' })
  const late = await member({ version: '3.6.1' })
  late.stop()
  const store = await open([first.url, late.url])
  follow(store)
  assert.equal(keysOf(await createdWatch(first)), '/registry/../registry0')
  const older = await member({ version: '3.4.23', port: portOf(late) })
  first.stop()
  assert.equal(keysOf(await createdWatch(older)), 'all')
})

test('ETC-19 a watch covers the range of keys alone again, the older member comes back upgraded', bounded, async () => {
  const older = await member({ version: '3.4.23' })
  follow(await open([older.url]))
  assert.equal(keysOf(await createdWatch(older)), 'all')
  older.stop()
  const upgraded = await member({ version: '3.4.31', port: portOf(older) })
  assert.equal(keysOf(await createdWatch(upgraded)), '/registry/../registry0')
})

test('ETC-19 a watch that replaces a broken one asks for the progress that readers wait for', bounded, async () => {
  const server = await member({ version: '3.6.1', revision: 9 })
  const store = await open([server.url])
  follow(store)
  const first = await createdWatch(server)
  assert.equal(await store.latestRevision(), 9)
  await until('the watch is asked', () => first.requests.some(({ progressRequest }) => progressRequest))
  first.end()
  const second = await createdWatch(server, 2)
  await until('the next watch is asked', () => second.requests.some(({ progressRequest }) => progressRequest))
  second.send({})
  const { length } = second.requests
  // Progress up to revision 9 was reported: nothing is waited for any more.
  await realClock.sleep(250)
  assert.ok(second.requests.length <= length + 1)
})

test('ETC-19 a write does not wait for a watch that names its first revision', bounded, async () => {
  const server = await member({ version: '3.6.1' })
  const store = await open([server.url], new VirtualClock() as never)
  const stop = new AbortController()
  const watching = store.watch({ from: 'a', startRevision: 1 }, () => {}, stop.signal)
  await createdWatch(server)
  assert.equal((await put(store)).succeeded, true)
  stop.abort()
  await watching
})

test('ETC-19 a write waits for a watch from now on until it is registered, and two seconds at most', bounded, async () => {
  const server = await member({ version: '3.6.1' })
  const clock = new VirtualClock()
  const store = await open([server.url], clock as never)
  const stop = new AbortController()
  const watching = store.watch({ from: 'a' }, () => {}, stop.signal)
  const watch = await createdWatch(server)
  const late = put(store)
  await realClock.sleep(50)
  assert.deepEqual(server.calls, [])
  await clock.advance(2_000)
  await late
  const next = put(store)
  await realClock.sleep(50)
  assert.equal(server.calls.length, 1)
  watch.send({ created: true })
  await next
  stop.abort()
  await watching
})

test('ETC-20 members of different clusters are refused when the store is opened, by their addresses', bounded, async () => {
  const members = await Promise.all([member({ version: '3.6.1', clusterId: '14841639068965178418' }), member({ version: '3.6.1', clusterId: '7' })])
  const [first, second] = members.map(({ url }) => url) as [string, string]
  await assert.rejects(openEtcdStore({ endpoints: [first, second], clock: realClock, random: seededRandom(1) }), ({ message }: Error) => {
    for (const part of [first, second, 'are members of different clusters', 'cdf818194e3a8c32', '7']) assert.ok(message.includes(part), `${message}: ${part}`)
    return true
  })
})

test('ETC-20 a member that is replaced by one of another cluster gets no call, and the others are used', bounded, async () => {
  const [first, second] = await Promise.all([member({ version: '3.6.1' }), member({ version: '3.6.1' })])
  const store = await open([first.url, second.url])
  await put(store)
  first.stop()
  const stranger = await member({ version: '3.6.1', clusterId: '2', port: portOf(first) })
  await put(store).catch(() => put(store))
  second.stop()
  const codeOf = () =>
    put(store).then(
      () => 'none',
      (error) => (error as StoreError).code,
    )
  await until('the store is unavailable', async () => (await codeOf()) === 'unavailable', { timeoutMs: 30_000 })
  assert.deepEqual([stranger.calls, second.calls], [[], ['Txn']])
})

test('ETC-20 an endpoint that swallows what it is sent costs a write less than its deadline', bounded, async () => {
  const sockets: Socket[] = []
  const hole = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
  await once(hole, 'listening')
  endings.push(() => {
    for (const socket of sockets) socket.destroy()
    hole.close()
  })
  const server = await member({ version: '3.6.1' })
  const started = performance.now()
  const store = await open([`http://127.0.0.1:${(hole.address() as AddressInfo).port}`, server.url])
  await put(store)
  assert.ok(performance.now() - started < 8_000, 'one connect timeout, not the deadline')
})

test('ETC-20 an answer above the limit of the driver is an error that names both sizes', bounded, async () => {
  const server = await member({ version: '3.6.1', kvs: [{ key: Buffer.from('a'), value: Buffer.alloc(1_000) }] })
  const endpoints = createEndpoints({ urls: [server.url], clock: realClock, maxAnswerBytes: 1_000 })
  endings.push(() => endpoints.close())
  const signal = new AbortController().signal
  const call = endpoints.call({ method: 'KV.Range', request: { key: Buffer.from('a') }, isRepeatable: true, signal })
  await assert.rejects(call, /larger than max \(10\d\d vs 1000\)/)
})

test('ETC-14 ids of leases keep all of their 63 bits', bounded, async () => {
  const server = await member({ version: '3.6.1', kvs: [{ key: Buffer.from('a'), value: Buffer.from('x'), lease: '7587860614524352259' }] })
  const { kvs } = await (await open([server.url])).range('a')
  assert.deepEqual(
    kvs.map(({ lease }) => lease),
    [7587860614524352259n],
  )
})
