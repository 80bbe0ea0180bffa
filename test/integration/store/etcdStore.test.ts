/** ETC: the store's suite over a real etcd, one fresh member for each test. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { seededRandom } from '#base/random'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import { realClock } from '#testing/realClock'
import { describeStore } from '#testing/storeConformance'
import { type EtcdServer, obstacleToEtcd, startEtcd } from '../../support/etcdServer.ts'

const servers: EtcdServer[] = []
after(() => Promise.all(servers.map((server) => server.stop())))

const skip = obstacleToEtcd()

async function open() {
  const server = await startEtcd()
  servers.push(server)
  return openEtcdStore({ endpoints: [server.url], clock: realClock, random: seededRandom(1) })
}

test('X9 the store tells the leader, the term and the log of etcd, which grows with a write', { skip }, async () => {
  const store = await open()
  const { raft: before } = await store.size()
  await store.transact({ compare: [], success: [{ type: 'put', key: 'k', value: Buffer.from('v') }] })
  const { raft: now } = await store.size()
  await store.close()
  assert.ok(before && now)
  assert.deepEqual([now.isLeader, now.hasLeader, now.term >= 1], [true, true, true])
  assert.ok(now.index > before.index && now.appliedIndex > before.appliedIndex, `${before.index} ${now.index}`)
})

describeStore({
  name: 'etcd',
  isRemote: true,
  skip,
  open,
  advance: (_, ms) => realClock.sleep(ms),
})
