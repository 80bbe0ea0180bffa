/** ETC-19: one real etcd that other programs use too: stores below other prefixes, and leases with ids of etcd's own. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { seededRandom } from '#base/random'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import type { Store } from '#store/store'
import { realClock } from '#testing/realClock'
import { type EtcdServer, obstacleToEtcd, startEtcd } from '../../support/etcdServer.ts'
import { until } from '../../support/until.ts'

const skip = obstacleToEtcd()
let server: EtcdServer
const stores: Store[] = []

before(async () => {
  if (!skip) server = await startEtcd()
})
after(async () => {
  await Promise.all(stores.map((store) => store.close()))
  await server?.stop()
})

async function open(prefix: string): Promise<Store> {
  const store = await openEtcdStore({ endpoints: [server.url], prefix, clock: realClock, random: seededRandom(1) })
  stores.push(store)
  return store
}

const write = async (store: Store, key: string) => (await store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.from('x') }] })).revision

test('ETC-19 a store sees the objects below its own prefix alone, others begin alike or are the default', { skip }, async () => {
  const [own, longer, usual] = await Promise.all(['/test1', '/test10', '/registry'].map(open))
  assert.ok(own && longer && usual)
  const stop = new AbortController()
  const seen: string[] = []
  let reached = 0
  const onProgress = (revision: number) => {
    reached = revision
  }
  const options = { from: '/registry/', to: '/registry0', startRevision: 1, onProgress }
  const watching = own.watch(
    options,
    ({ revision, events }) => {
      reached = revision
      for (const { kv } of events) seen.push(kv.key)
    },
    stop.signal,
  )
  await write(longer, '/registry/pods/a/longer')
  await write(usual, '/registry/pods/a/usual')
  await write(own, '/registry/pods/a/own')
  const last = await write(usual, '/registry/pods/a/later')
  await until('the watch has seen everything', () => reached >= last)
  stop.abort()
  await watching
  assert.deepEqual(seen, ['/registry/pods/a/own'])
  for (const store of [own, longer]) assert.equal((await store.range('/registry/', '/registry0', { countOnly: true })).count, 1)
  assert.equal((await usual.range('/registry/', '/registry0', { countOnly: true })).count, 2)
})

/** etcd's API as JSON: numbers of 64 bits are strings. */
async function gateway(method: string, request: object): Promise<Record<string, unknown>> {
  const answer = await fetch(`${server.url}/v3/${method}`, { method: 'POST', body: JSON.stringify(request) })
  assert.equal(answer.status, 200)
  return (await answer.json()) as Record<string, unknown>
}
const base64 = (text: string) => Buffer.from(text).toString('base64')

test('ETC-14 a lease of another program keeps all bits of its id', { skip }, async () => {
  const store = await open('/registry')
  const id = 7587860614524352259n
  await gateway('lease/grant', { TTL: '100', ID: String(id) })
  await gateway('kv/put', { key: base64('/registry/leased'), value: base64('x'), lease: String(id) })
  assert.equal((await store.range('/registry/leased')).kvs[0]?.lease, id)
  const holds = (value: bigint) => store.transact({ compare: [{ key: '/registry/leased', target: 'lease', op: '=', value }], success: [] })
  assert.deepEqual([(await holds(id)).succeeded, (await holds(id + 1n)).succeeded], [true, false])
  assert.deepEqual(await store.keepLeaseAlive(id), { ttlSeconds: 100 })
  await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/other', value: Buffer.from('x'), lease: id }] })
  await store.revokeLease(id)
  assert.equal((await store.range('/registry/', '/registry0', { countOnly: true })).count, 2, 'the two objects without a lease')
})
