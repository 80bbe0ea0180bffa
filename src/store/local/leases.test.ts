import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { LeaseId } from '../store.ts'
import { Leases } from './leases.ts'

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
