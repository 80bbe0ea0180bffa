/** ETC-23: what the health checks of the store say, and how often they ask it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { storeChecks } from './storeChecks.ts'

function checksOf(latestRevision: () => number | Promise<number>, cachedRevision = 1) {
  const clock = new VirtualClock()
  let asked = 0
  const store = {
    latestRevision: () => {
      asked++
      return latestRevision()
    },
  }
  const [health, readiness] = storeChecks({ store, clock, cachedRevision: () => cachedRevision }, { healthMs: 2000, readyMs: 500 })
  return { clock, health, readiness, asked: () => asked }
}

test('ETC-23 the check etcd waits for the watch caches before it asks the store', async () => {
  const { health, asked } = checksOf(() => 7, 0)
  assert.equal(await health?.check(), 'the watch caches are not filled yet')
  assert.equal(asked(), 0)
})

test('ETC-23 a store that answers is healthy, and is asked at most once in half of the timeout', async () => {
  const { clock, health, asked } = checksOf(() => 7)
  for (let at = 0; at < 10; at++) assert.equal(await health?.check(), undefined)
  assert.equal(asked(), 1)
  await clock.advance(1000)
  await health?.check()
  assert.equal(asked(), 2)
})

test('ETC-23 the check fails with the error of the store', async () => {
  const { health } = checksOf(() => Promise.reject(new Error('no leader')))
  assert.equal(await health?.check(), 'no leader')
})

test('ETC-23 a store that does not answer fails the readiness check when its own timeout is over, and /livez does not ask it', async () => {
  const { clock, readiness } = checksOf(() => new Promise(() => {}))
  const answer = readiness?.check()
  await clock.advance(500)
  assert.equal(await answer, 'no answer within 500 ms')
  assert.deepEqual([readiness?.name, readiness?.livez], ['etcd-readiness', false])
})
