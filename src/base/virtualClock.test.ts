import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from './virtualClock.ts'

function setUp() {
  const clock = new VirtualClock()
  const fired: string[] = []
  const at = (ms: number, name: string) => clock.timer(ms, () => void fired.push(`${name}@${clock.monotonicMs()}`))
  return { clock, fired, at }
}

test('timers fire in order of due time, then of creation', async () => {
  const { clock, fired, at } = setUp()
  at(20, 'a')
  at(10, 'b')
  at(20, 'c')
  at(0, 'd')
  await clock.advance(5)
  at(15, 'e')
  at(5, 'f')
  await clock.advance(100)
  assert.deepEqual(fired, ['d@0', 'b@10', 'f@10', 'a@20', 'c@20', 'e@20'])
  assert.equal(clock.monotonicMs(), 105)
})

test('a timer armed by another for the same instant fires after those that are there already', async () => {
  const { clock, fired, at } = setUp()
  clock.timer(10, () => {
    fired.push('first')
    at(0, 'again')
  })
  at(10, 'second')
  await clock.advance(10)
  assert.deepEqual(fired, ['first', 'second@10', 'again@10'])
})

test('time does not go back when a shorter advance ends after a longer one', async () => {
  const { clock, at } = setUp()
  at(10, 'a')
  await Promise.all([clock.advance(20), clock.advance(100)])
  assert.equal(clock.monotonicMs(), 100)
  const times: number[] = []
  at(5, 'b')
  const short = clock.advance(10).then(() => times.push(clock.monotonicMs()))
  await Promise.all([clock.advance(50).then(() => times.push(clock.monotonicMs())), short])
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
  )
})

test('a cancelled timer does not fire, and nothing waits for it', async () => {
  const { clock, fired, at } = setUp()
  const first = at(10, 'a')
  at(10, 'b')
  const last = at(30, 'c')
  first.cancel()
  first.cancel()
  assert.equal(clock.nextTimerMs(), 10)
  await clock.advance(10)
  first.cancel()
  assert.deepEqual(fired, ['b@10'])
  assert.equal(clock.nextTimerMs(), 20)
  last.cancel()
  assert.equal(clock.nextTimerMs(), undefined)
  at(5, 'd')
  assert.equal(clock.nextTimerMs(), 5)
  await clock.advance(20)
  assert.deepEqual(fired, ['b@10', 'd@15'])
})

test('a timer can be cancelled by one of the same instant', async () => {
  const { clock, fired, at } = setUp()
  const timers = [clock.timer(10, () => timers[1]?.cancel())]
  timers.push(at(10, 'b'))
  at(10, 'c')
  await clock.advance(10)
  assert.deepEqual(fired, ['c@10'])
})

test('a sleep that is aborted arms nothing any more', async () => {
  const { clock } = setUp()
  const stop = new AbortController()
  const asleep = clock.sleep(10, stop.signal)
  stop.abort(new Error('over'))
  await assert.rejects(asleep, /over/)
  assert.equal(clock.nextTimerMs(), undefined)
})

test('a timer that keeps arming itself without time moving on is reported', async () => {
  const clock = new VirtualClock(0, () => Promise.resolve())
  const again = () => void clock.timer(0, again)
  again()
  await assert.rejects(clock.advance(1), /runaway timer/)
})
