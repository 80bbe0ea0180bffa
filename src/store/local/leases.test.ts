import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import type { LeaseId } from '../store.ts'
import { storeError } from '../storeError.ts'
import { Leases } from './leases.ts'
import { MvccStore } from './mvccStore.ts'

const dayMs = 86_400_000

/** A clock whose wall time the test sets, as an administrator or NTP does. */
class SetClock extends VirtualClock {
  setByMs = 0

  override now(): number {
    return super.now() + this.setByMs
  }
}

for (const [how, setByMs] of [
  ['forward', dayMs],
  ['back', -dayMs],
] as const)
  test(`ETC-14 a lease lasts for its time, the wall clock is set ${how} by a day`, async () => {
    const clock = new SetClock()
    const expired: LeaseId[] = []
    const leases = new Leases(clock, (id) => expired.push(id))
    leases.add(1, 10)
    await clock.advance(4_000)
    clock.setByMs = setByMs
    await clock.advance(5_000)
    assert.deepEqual(expired, [])
    assert.equal(leases.state(1)?.remainingSeconds, 1)
    assert.equal(leases.keepAlive(1).ttlSeconds, 10)
    await clock.advance(9_000)
    assert.deepEqual(expired, [])
    await clock.advance(1_000)
    assert.deepEqual(expired, [1])
  })

test('ETC-14 ids of leases grow, the wall clock is set back', () => {
  const clock = new SetClock()
  const leases = new Leases(clock, () => {})
  const first = leases.newId()
  clock.setByMs = -dayMs
  assert.ok(leases.newId() > first)
})

/** A store whose backend refuses writes while `isFull`. */
function storeOnDisk() {
  const clock = new VirtualClock()
  const disk = { isFull: false }
  const append = async () => {
    if (disk.isFull) throw storeError('noSpace')
  }
  const nothing = async () => {}
  const store = new MvccStore({ append, forget: nothing, close: nothing }, { clock, log: noLog, maxLogBytes: 1 << 20 })
  const put = (key: string, lease: number) => store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.from('x'), lease }] })
  return { clock, disk, store, put, exists: async (key: string) => (await store.range(key)).count === 1 }
}

test('ETC-14 a lease whose end could not be written keeps its keys, and ends with them later', async () => {
  const { clock, disk, store, put, exists } = storeOnDisk()
  await store.grantLease(60, 7)
  await put('k', 7)
  disk.isFull = true
  await assert.rejects(store.revokeLease(7), { code: 'noSpace' })
  assert.deepEqual([...store.leaseKeys(7)], ['k'])
  assert.equal(store.lease(7)?.ttlSeconds, 60)
  await clock.advance(61_000)
  assert.equal(await exists('k'), true)
  disk.isFull = false
  await clock.advance(2_000)
  assert.equal(await exists('k'), false)
  assert.equal(store.lease(7), undefined)
})

test('ETC-14 a lease whose end is being written is found by snapshots alone', async () => {
  const { store, put } = storeOnDisk()
  await store.grantLease(60, 7)
  await put('k', 7)
  const ending = store.revokeLease(7)
  assert.equal(store.lease(7), undefined)
  await assert.rejects(put('other', 7), { code: 'leaseNotFound' })
  const snapshot = await store.snapshot()
  assert.deepEqual(snapshot.leases, [{ id: 7, ttlSeconds: 60 }])
  snapshot.close()
  await ending
  assert.deepEqual(store.leaseIds(), [])
})

test('ETC-14 a lease that is granted while one of the same id ends stays', async () => {
  const { store } = storeOnDisk()
  await store.grantLease(60, 7)
  await Promise.all([store.revokeLease(7), store.grantLease(30, 7)])
  assert.equal(store.lease(7)?.ttlSeconds, 30)
})
