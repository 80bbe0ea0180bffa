/** ETC-20: the store over three members of etcd, which die, stop and come back while it writes and watches. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { seededRandom } from '#base/random'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import type { Store, StoreError } from '#store/store'
import { realClock } from '#testing/realClock'
import { type EtcdCluster, obstacleToEtcd, startEtcdCluster } from '../../support/etcdServer.ts'
import { until } from '../../support/until.ts'

const skip = obstacleToEtcd()
const rounds = 6
const writers = 4
let cluster: EtcdCluster
let store: Store

before(async () => {
  if (skip) return
  cluster = await startEtcdCluster(3)
  store = await openEtcdStore({ endpoints: cluster.urls, clock: realClock, random: seededRandom(1) })
})
after(async () => {
  await store?.close()
  await cluster?.stop()
})

/** Follows the range as the watch cache does: a watch that broke resumes after the last revision. */
function follow(from: string, to: string, startRevision: number, signal: AbortSignal) {
  const seen: string[] = []
  let next = startRevision
  const run = async () => {
    while (!signal.aborted) {
      const watching = store.watch(
        { from, to, startRevision: next },
        ({ revision, events }) => {
          next = revision + 1
          for (const { kv } of events) seen.push(`${kv.key}@${revision}`)
        },
        signal,
      )
      await watching.catch(() => realClock.sleep(50, signal).catch(() => {}))
    }
  }
  return { seen, done: run() }
}

test('ETC-20 ETC-07 no acknowledged write is lost and a watch has no gap, members are killed and suspended in turn', { skip, timeout: 180_000 }, async () => {
  const stop = new AbortController()
  const first = (await store.latestRevision()) + 1
  const watch = follow('/registry/', '/registry0', first, stop.signal)
  const acknowledged = new Map<string, number>()
  const uncertain = new Set<string>()
  let isWriting = true
  const write = async (writer: number) => {
    for (let n = 0; isWriting; n++) {
      const key = `/registry/${writer}/${n}`
      try {
        const { revision, succeeded } = await store.transact({
          compare: [{ key, target: 'mod', op: '=', value: 0 }],
          success: [{ type: 'put', key, value: Buffer.from('x') }],
        })
        assert.ok(succeeded, `${key} is written once`)
        acknowledged.set(key, revision)
      } catch (error) {
        const { code } = error as StoreError
        assert.ok(code === 'unavailable' || code === 'unknownOutcome', String(error))
        if (code === 'unknownOutcome') uncertain.add(key)
      }
      await realClock.sleep(2)
    }
  }
  const writing = Array.from({ length: writers }, (_, writer) => write(writer))
  for (let round = 0; round < rounds; round++) {
    const member = cluster.members[round % 3]
    assert.ok(member)
    const before = acknowledged.size
    if (round % 2 === 0) await member.kill()
    else member.process.kill('SIGSTOP')
    await until('writes go on without the member', () => acknowledged.size > before + 20, { timeoutMs: 30_000 })
    if (round % 2 === 0) member.restart()
    else member.process.kill('SIGCONT')
    const returned = acknowledged.size
    await until('writes go on with it', () => acknowledged.size > returned + 20, { timeoutMs: 30_000 })
  }
  isWriting = false
  await Promise.all(writing)
  const { kvs } = await store.range('/registry/', '/registry0')
  const stored = new Map(kvs.map(({ key, modRevision }) => [key, modRevision]))
  for (const [key, revision] of acknowledged) assert.equal(stored.get(key), revision, key)
  for (const key of stored.keys()) assert.ok(acknowledged.has(key) || uncertain.has(key), `${key} was refused`)
  await until('the watch has seen everything', () => watch.seen.length >= stored.size)
  stop.abort()
  await watch.done
  const wanted = [...stored].sort(([, a], [, b]) => a - b).map(([key, revision]) => `${key}@${revision}`)
  assert.deepEqual(watch.seen, wanted)
})

test('ETC-20 ARC-08 without a quorum writes fail in bounded time, and succeed again when it is back', { skip, timeout: 120_000 }, async () => {
  const [first, second] = cluster.members
  assert.ok(first && second)
  await Promise.all([first.kill(), second.kill()])
  const started = performance.now()
  await assert.rejects(store.transact({ compare: [], success: [{ type: 'put', key: '/registry/q', value: Buffer.from('x') }] }), (error) => {
    const { code } = error as StoreError
    return code === 'unavailable' || code === 'unknownOutcome'
  })
  await assert.rejects(store.range('/registry/q') as Promise<unknown>, (error) => (error as StoreError).code === 'unavailable')
  assert.ok(performance.now() - started < 30_000)
  first.restart()
  second.restart()
  const again = () => store.transact({ compare: [], success: [{ type: 'put', key: '/registry/r', value: Buffer.from('x') }] }).catch(() => undefined)
  assert.ok(await until('a write succeeds', again, { timeoutMs: 30_000 }))
})
