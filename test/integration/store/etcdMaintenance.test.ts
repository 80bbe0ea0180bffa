/**
 * Maintenance of each member of an etcd in turn, under writes of an API server's store: the lead is moved away, the member stops, its database is rewritten or lost, it
 * starts and catches up. Every acknowledged write stays, and a watch sees each once. docs/high-availability.md describes the steps.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { seededRandom } from '#base/random'
import { addLearner, removeById } from '#main/etcd/membership'
import { removeOwnMember } from '#main/leave/ownEtcdMember'
import { createEtcdAdministration, type EtcdAdministration } from '#store/drivers/etcd/administration'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import type { Store } from '#store/store'
import { isStoreError } from '#store/storeError'
import { realClock } from '#testing/realClock'
import { type EtcdCluster, type EtcdMember, obstacleToEtcd, startEtcdCluster } from '../../support/etcdServer.ts'
import { until } from '../../support/until.ts'

const options = { skip: obstacleToEtcd(), timeout: 180_000 }

interface Traffic {
  /** Keys whose writes were acknowledged. */
  readonly acknowledged: ReadonlySet<string>
  /** Ends the writers and the watch. @returns how often the watch saw each key */
  end(): Promise<ReadonlyMap<string, number>>
}

/** Clients that create keys, and a watch from the first revision on. A write whose outcome is unknown is not counted as acknowledged. */
function startTraffic(store: Store): Traffic {
  const acknowledged = new Set<string>()
  const seen = new Map<string, number>()
  const stop = new AbortController()
  const following = new AbortController()
  let next = 0
  const write = async () => {
    while (!stop.signal.aborted) {
      const key = `/registry/k/${next++}`
      const compare = [{ key, target: 'version', op: '=', value: 0 } as const]
      try {
        await store.transact({ compare, success: [{ type: 'put', key, value: Buffer.from('x') }] })
        acknowledged.add(key)
      } catch (error) {
        if (!isStoreError(error, 'unavailable') && !isStoreError(error, 'unknownOutcome')) throw error
      }
    }
  }
  let after = 1
  const follow = async () => {
    while (!following.signal.aborted) {
      const onBatch = ({ revision, events }: Parameters<Parameters<Store['watch']>[1]>[0]) => {
        after = revision + 1
        for (const { kv } of events) seen.set(kv.key, (seen.get(kv.key) ?? 0) + 1)
      }
      await store.watch({ from: '/registry/', to: '/registry0', startRevision: after }, onBatch, following.signal).catch((error: unknown) => {
        if (!isStoreError(error, 'unavailable')) throw error
      })
      await realClock.sleep(20)
    }
  }
  const running = [write(), write(), write()]
  const watching = follow()
  return {
    acknowledged,
    async end() {
      stop.abort()
      await Promise.all(running)
      await until('the watch has seen every acknowledged write', () => [...acknowledged].every((key) => seen.has(key)), { timeoutMs: 30_000 })
      following.abort()
      await watching
      return seen
    },
  }
}

interface Setup {
  readonly cluster: EtcdCluster
  readonly store: Store
  readonly etcd: EtcdAdministration
}

async function start(context: TestContext): Promise<Setup> {
  const cluster = await startEtcdCluster(3)
  context.after(() => cluster.stop())
  const store = await openEtcdStore({ endpoints: cluster.urls, clock: realClock, random: seededRandom(1) })
  context.after(() => store.close())
  const etcd = createEtcdAdministration(cluster.urls, undefined)
  context.after(() => etcd.close())
  return { cluster, store, etcd }
}

const idOf = async (etcd: EtcdAdministration, url: string) => (await etcd.members()).find(({ clientUrls }) => clientUrls.includes(url))?.id ?? ''

/** Lets another member lead, if this one does. */
async function moveLeadAway({ cluster, etcd }: Setup, { url }: EtcdMember): Promise<void> {
  if (!(await etcd.status(url)).isLeader) return
  const other = cluster.urls.find((one) => one !== url) ?? ''
  await etcd.moveLeader(url, await idOf(etcd, other))
  assert.deepEqual([(await etcd.status(url)).isLeader, (await etcd.status(other)).isLeader], [false, true])
}

async function stopInOrder(member: EtcdMember): Promise<void> {
  const ended = once(member.process, 'exit')
  member.process.kill('SIGTERM')
  await ended
}

/** The member has what a write shows that was made now. */
async function untilCaughtUp({ store, etcd }: Setup, { url }: EtcdMember): Promise<void> {
  const { revision } = await store.transact({ compare: [], success: [{ type: 'put', key: '/mark', value: Buffer.from(url) }] })
  const own = await openEtcdStore({ endpoints: [url], clock: realClock, random: seededRandom(2) }).catch(() => undefined)
  try {
    await until('the member has caught up', async () => ((await own?.range('/mark').catch(() => undefined))?.revision ?? 0) >= revision)
    const { isLearner, errors } = await etcd.status(url)
    assert.deepEqual([isLearner, errors], [false, []])
  } finally {
    await own?.close()
  }
}

const dataOf = ({ process }: EtcdMember) => process.spawnargs[process.spawnargs.indexOf('--data-dir') + 1] ?? ''

async function assertNothingLost(store: Store, traffic: Traffic, acknowledgedAtLeast: number): Promise<void> {
  const seen = await traffic.end()
  const { kvs } = await store.range('/registry/k/', '/registry/k0')
  const there = new Set(kvs.map(({ key }) => key))
  assert.ok(traffic.acknowledged.size >= acknowledgedAtLeast, `${traffic.acknowledged.size} writes`)
  assert.deepEqual(
    [...traffic.acknowledged].filter((key) => !there.has(key)),
    [],
  )
  assert.deepEqual(
    [...seen].filter(([, times]) => times !== 1),
    [],
  )
}

test('ETC-07 ETC-13 each member stops for maintenance in turn, and no write or event is lost', options, async (context) => {
  const setup = await start(context)
  const { cluster, store } = setup
  const traffic = startTraffic(store)
  for (const member of cluster.members) {
    const before = traffic.acknowledged.size
    await moveLeadAway(setup, member)
    await stopInOrder(member)
    // Without the server: etcdctl reads and writes the files.
    execFileSync('etcdctl', ['defrag', '--data-dir', dataOf(member)], { env: { ...process.env, ETCDCTL_API: '3' }, stdio: 'pipe' })
    await until('writes go on without the member', () => traffic.acknowledged.size > before + 50, { timeoutMs: 30_000 })
    member.restart()
    await until('the member answers', async () => (await setup.etcd.status(member.url).catch(() => undefined)) !== undefined)
    await untilCaughtUp(setup, member)
  }
  await assertNothingLost(store, traffic, 150)
})

test('ETC-09 a member whose disk is lost is replaced while clients write, and nothing is lost', options, async (context) => {
  const setup = await start(context)
  const { cluster, store, etcd } = setup
  const traffic = startTraffic(store)
  const [member] = cluster.members as [EtcdMember]
  await until('some writes', () => traffic.acknowledged.size > 50)
  await moveLeadAway(setup, member)
  await stopInOrder(member)
  const { id, peerUrls } = (await etcd.members()).find(({ clientUrls }) => clientUrls.includes(member.url)) ?? assert.fail('no such member')
  await removeById(realClock, etcd, id)
  await fs.rm(dataOf(member), { recursive: true })
  const known = await addLearner(realClock, etcd, peerUrls[0] ?? '')
  const initial = known.map((one) => `${one.name || 'm0'}=${one.peerUrls[0]}`).join(',')
  member.restart(['--initial-cluster', initial, '--initial-cluster-state', 'existing'])
  const added = known.find(({ isLearner }) => isLearner)?.id ?? ''
  await until(
    'the member votes',
    () =>
      etcd.promote(added).then(
        () => true,
        () => false,
      ),
    { timeoutMs: 60_000 },
  )
  await untilCaughtUp(setup, member)
  assert.equal((await etcd.members()).filter(({ isLearner }) => !isLearner).length, 3)
  await assertNothingLost(store, traffic, 100)
})

test('HA-06 the member of etcd on a machine that leaves is taken out, and the other two take writes', options, async (context) => {
  const { cluster, store, etcd } = await start(context)
  const before = await etcd.members()
  const name = await removeOwnMember(realClock, etcd, new Set(['127.0.0.1']))
  assert.deepEqual(
    (await etcd.members()).map((one) => one.name),
    before.map((one) => one.name).filter((one) => one !== name),
  )
  await until('the member has ended', () => cluster.members.some(({ process }) => process.exitCode !== null))
  await until('a write', () =>
    store.transact({ compare: [], success: [{ type: 'put', key: '/registry/x', value: Buffer.from('x') }] }).then(
      () => true,
      () => false,
    ),
  )
})
