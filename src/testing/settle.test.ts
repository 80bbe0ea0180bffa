import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { Activity, pausingClock, settle } from './settle.ts'

test('X2 a request that waits for the clock within the server is not under way meanwhile', async () => {
  const activity = new Activity()
  const clock = new VirtualClock(undefined, () => settle(activity))
  activity.begin()
  activity.begin()
  const waiting = pausingClock(clock, activity).sleep(1_000)
  assert.equal(activity.inFlight, 1)
  activity.end()
  await clock.advance(999)
  assert.equal(activity.inFlight, 0)
  const state = { isOver: false }
  const over = waiting.then(() => {
    state.isOver = true
    activity.end()
  })
  await clock.advance(1)
  await over
  assert.deepEqual([state.isOver, activity.inFlight], [true, 0])
})

test('X2 the wait of an uncounted request leaves the count correct', async () => {
  const activity = new Activity()
  const clock = new VirtualClock(undefined, () => settle(activity))
  const waiting = pausingClock(clock, activity).sleep(1_000)
  await clock.advance(1_000)
  await waiting
  assert.equal(activity.inFlight, 0)
  activity.begin()
  assert.equal(activity.inFlight, 1)
})

test('X2 a wait that is aborted within a request counts the request again', async () => {
  const activity = new Activity()
  const clock = pausingClock(new VirtualClock(), activity)
  const stop = new AbortController()
  activity.begin()
  const waiting = clock.sleep(1_000, stop.signal)
  assert.equal(activity.inFlight, 0)
  stop.abort(new Error('over'))
  await assert.rejects(waiting, /over/)
  assert.equal(activity.inFlight, 1)
})
