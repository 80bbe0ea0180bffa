import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { Cancellation } from './cancellation.ts'

test('a signal that is asked for late tells what happened before', () => {
  const cancellation = new Cancellation()
  assert.equal(cancellation.aborted, false)
  cancellation.abort('gone')
  cancellation.abort('again')
  assert.deepEqual([cancellation.aborted, cancellation.signal.aborted, cancellation.signal.reason], [true, true, 'gone'])
})

test('a signal that is asked for early is told', () => {
  const cancellation = new Cancellation()
  const { signal } = cancellation
  cancellation.abort('gone')
  assert.deepEqual([signal === cancellation.signal, signal.aborted, signal.reason], [true, true, 'gone'])
})

test('the outer signal cancels, before and after the inner one is asked for', () => {
  const early = new AbortController()
  const asked = new Cancellation(early.signal)
  const { signal } = asked
  early.abort('over')
  assert.deepEqual([asked.aborted, signal.reason], [true, 'over'])
  const late = new AbortController()
  late.abort('over')
  assert.deepEqual([new Cancellation(late.signal).aborted, new Cancellation(late.signal).signal.reason], [true, 'over'])
})

test('nothing stays on the outer signal of a request that is over', () => {
  const outer = new AbortController()
  const quiet = new Cancellation(outer.signal)
  assert.equal(getEventListeners(outer.signal, 'abort').length, 0, 'nobody asked')
  const { signal } = quiet
  assert.equal(getEventListeners(outer.signal, 'abort').length, 1)
  quiet.release()
  outer.abort()
  assert.deepEqual([getEventListeners(outer.signal, 'abort').length, signal.aborted], [0, false])
})
