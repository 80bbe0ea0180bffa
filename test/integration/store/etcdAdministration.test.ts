/** ETC-09, ETC-13: members and defragmentation over a real etcd of three members. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { defragmentDue } from '#main/etcd/defragmentation'
import { createEtcdAdministration, type EtcdAdministration } from '#store/drivers/etcd/administration'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import { realClock } from '#testing/realClock'
import { type EtcdCluster, obstacleToEtcd, startEtcdCluster } from '../../support/etcdServer.ts'

const skip = obstacleToEtcd()
const options = { skip, timeout: 60_000 }
const mebibyte = 2 ** 20
let cluster: EtcdCluster
let etcd: EtcdAdministration

before(async () => {
  if (skip) return
  cluster = await startEtcdCluster(3)
  etcd = createEtcdAdministration(cluster.urls, undefined)
})
after(async () => {
  etcd?.close()
  await cluster?.stop()
})

test('ETC-13 members whose file is mostly free are rewritten one by one, the leader last, and keep their data', options, async () => {
  const store = await openEtcdStore({ endpoints: cluster.urls, clock: realClock, random: seededRandom(1) })
  const value = new Uint8Array(mebibyte)
  for (let i = 0; i < 12; i++) await store.transact({ compare: [], success: [{ type: 'put', key: `/registry/a/${i}`, value }] })
  const { revision } = await store.transact({ compare: [], success: [{ type: 'delete', from: '/registry/a/', to: '/registry/a/9' }] })
  await store.compact(revision)
  const statuses = () => Promise.all(cluster.urls.map((url) => etcd.status(url)))
  // etcd frees what was compacted after it has answered, with later writes.
  for (let all = await statuses(); all.some(({ dbSize, dbSizeInUse }) => dbSizeInUse > dbSize / 2); all = await statuses()) {
    await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/b', value: Buffer.from('b') }] })
    await realClock.sleep(50)
  }
  const before = await statuses()
  const leader = cluster.urls[before.findIndex(({ isLeader }) => isLeader)]
  assert.ok(before.every(({ dbSize }) => dbSize > 8 * mebibyte))
  const order = await defragmentDue(cluster.urls, etcd, noLog, mebibyte)
  assert.deepEqual([[...order].sort(), order.at(-1)], [[...cluster.urls].sort(), leader])
  assert.ok((await statuses()).every(({ dbSize }) => dbSize < 5 * mebibyte))
  assert.deepEqual(await defragmentDue(cluster.urls, etcd, noLog, mebibyte), [])
  assert.equal((await store.range('/registry/a/9')).kvs[0]?.value.length, mebibyte)
  await store.close()
})

test('ETC-09 a member that is added is a learner without a name, votes only after it has started, and is removed by its id of 64 bits', options, async () => {
  const [first] = await etcd.members()
  assert.match(first?.name ?? '', /^m\d$/)
  // etcd refuses changes until its members have been connected for five seconds.
  const added = () =>
    etcd.addLearner('http://127.0.0.1:1').catch((error: Error) => (/unhealthy cluster/.test(error.message) ? undefined : Promise.reject(error)))
  let known = await added()
  while (!known) {
    await realClock.sleep(100)
    known = await added()
  }
  const learner = known.find(({ isLearner }) => isLearner)
  assert.ok(learner)
  assert.deepEqual([known.length, learner.name, learner.peerUrls], [4, '', ['http://127.0.0.1:1']])
  await assert.rejects(etcd.promote(learner.id), /learner/)
  await etcd.remove(learner.id)
  assert.deepEqual((await etcd.members()).map(({ name }) => name).sort(), ['m0', 'm1', 'm2'])
})

test('ETC-09 members are asked at one that answers, when another one is down', options, async () => {
  const [member] = cluster.members
  await member?.kill()
  assert.equal((await etcd.members()).length, 3)
  member?.restart()
})
