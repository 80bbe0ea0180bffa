/** The etcd driver over members whose log is cut and whose leader fails: the timers and the log are etcd's, what a client sees of them is tested here. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { connectGrpc } from '#grpc/grpcConnection'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import { methodOf } from '#store/drivers/etcd/methods'
import type { Store } from '#store/store'
import { realClock } from '#testing/realClock'
import { type EtcdCluster, type EtcdMember, obstacleToEtcd, startEtcdCluster } from '../../support/etcdServer.ts'
import { until } from '../../support/until.ts'

const options = { skip: obstacleToEtcd(), timeout: 180_000 }

async function ask<Answer>({ url }: EtcdMember, name: string, request: object = {}): Promise<Answer> {
  const method = methodOf(name)
  const connection = connectGrpc(url.replace('http://', ''))
  try {
    return method.response.decode(await connection.unary(method.path, method.request.encode(request), { timeoutMs: 10_000 })) as Answer
  } finally {
    connection.close()
  }
}

interface Status {
  readonly header: { readonly memberId: number }
  readonly leader: number
}

async function leaderOf({ members }: EtcdCluster): Promise<EtcdMember> {
  for (const member of members) {
    const { header, leader } = await ask<Status>(member, 'Maintenance.Status')
    if (header.memberId === leader) return member
  }
  throw new Error('no member leads')
}

const open = ({ urls }: EtcdCluster): Promise<Store> => openEtcdStore({ endpoints: urls, clock: realClock, random: seededRandom(1) })
const put = (store: Store, key: string) => store.transact({ compare: [], success: [{ type: 'put', key: `/registry/${key}`, value: Buffer.from('x') }] })

async function putMany(store: Store, count: number): Promise<void> {
  let next = 0
  const writer = async () => {
    while (next < count) await put(store, `many-${next++}`)
  }
  await Promise.all(Array.from({ length: 64 }, writer))
}

test('ETC-16 a member that was away for longer than the log is kept gets a snapshot, and has the same keys', options, async (context) => {
  const cluster = await startEtcdCluster(3, undefined, undefined, ['--snapshot-count', '100'])
  context.after(() => cluster.stop())
  const store = await open(cluster)
  context.after(() => store.close())
  await put(store, 'first')
  const leader = await leaderOf(cluster)
  const away = cluster.members.find((member) => member !== leader) as EtcdMember
  await away.kill()
  // Beyond a snapshot etcd keeps another 5,000 entries of the log for those who are late.
  await putMany(store, 5_500)
  away.restart()
  const { revision } = await store.range('/registry/first')
  const hashAt = (member: EtcdMember) => ask<{ readonly hash: number }>(member, 'Maintenance.HashKV', { revision }).then(({ hash }) => hash)
  const wanted = await hashAt(leader)
  await until('the member has caught up', async () => (await hashAt(away).catch(() => undefined)) === wanted, { timeoutMs: 60_000 })
  const metrics = await (await fetch(`${away.url}/metrics`)).text()
  assert.match(metrics, /^etcd_network_snapshot_receive_success\{.*\} 1$/m)
})

/** Milliseconds from the death of the leader to the next write that succeeds. */
async function failoverMs(electionTimeoutMs: number): Promise<number> {
  const timers = ['--heartbeat-interval', String(electionTimeoutMs / 10), '--election-timeout', String(electionTimeoutMs)]
  const cluster = await startEtcdCluster(3, undefined, undefined, timers)
  try {
    const store = await open(cluster)
    await put(store, 'before')
    await (await leaderOf(cluster)).kill()
    const start = realClock.monotonicMs()
    for (let tries = 0; ; tries++) {
      const isWritten = await put(store, `try-${tries}`).then(
        () => true,
        () => false,
      )
      if (isWritten) break
      await realClock.sleep(10)
    }
    const elapsedMs = realClock.monotonicMs() - start
    await store.close()
    return elapsedMs
  } finally {
    await cluster.stop()
  }
}

test('ETC-17 ETC-07 writes resume after the election timeout that the members were given', options, async () => {
  const [short, long] = [await failoverMs(200), await failoverMs(5_000)]
  // A follower waits for one to two election timeouts before it stands for election.
  assert.ok(long > 2_500, `${long} ms with 5 s`)
  assert.ok(short < long, `${short} ms with 200 ms, ${long} ms with 5 s`)
})
