import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { Cancellation } from './cancellation.ts'

test('a signal that is requested after the abort is aborted', () => {
  const cancellation = new Cancellation()
  assert.equal(cancellation.aborted, false)
  cancellation.abort('gone')
  cancellation.abort('again')
  assert.deepEqual([cancellation.aborted, cancellation.signal.aborted, cancellation.signal.reason], [true, true, 'gone'])
})

test('a signal that is requested before the abort, aborts', () => {
  const cancellation = new Cancellation()
  const { signal } = cancellation
  cancellation.abort('gone')
  assert.deepEqual([signal === cancellation.signal, signal.aborted, signal.reason], [true, true, 'gone'])
})

test('the outer signal cancels, before and after the inner one is requested', () => {
  const early = new AbortController()
  const asked = new Cancellation(early.signal)
  const { signal } = asked
  early.abort('over')
  assert.deepEqual([asked.aborted, signal.reason], [true, 'over'])
  const late = new AbortController()
  late.abort('over')
  assert.deepEqual([new Cancellation(late.signal).aborted, new Cancellation(late.signal).signal.reason], [true, 'over'])
})

test('release removes the listener from the outer signal', () => {
  const outer = new AbortController()
  const quiet = new Cancellation(outer.signal)
  assert.equal(getEventListeners(outer.signal, 'abort').length, 0, 'nobody asked')
  const { signal } = quiet
  assert.equal(getEventListeners(outer.signal, 'abort').length, 1)
  quiet.release()
  outer.abort()
  assert.deepEqual([getEventListeners(outer.signal, 'abort').length, signal.aborted], [0, false])
})

const listened: readonly { name: string; run: (told: () => void) => void; want: number }[] = [
  {
    name: 'is called once, for two aborts',
    run: (told) => {
      const cancellation = new Cancellation()
      cancellation.onAbort(told)
      cancellation.abort('gone')
      cancellation.abort('again')
    },
    want: 1,
  },
  {
    name: 'is called at once, after an abort',
    run: (told) => {
      const cancellation = new Cancellation()
      cancellation.abort('gone')
      cancellation.onAbort(told)
    },
    want: 1,
  },
  {
    name: 'is not called, after it was replaced by undefined',
    run: (told) => {
      const cancellation = new Cancellation()
      cancellation.onAbort(told)
      cancellation.onAbort(undefined)
      cancellation.abort('gone')
    },
    want: 0,
  },
  {
    name: 'is called, when the outer signal aborts',
    run: (told) => {
      const outer = new AbortController()
      new Cancellation(outer.signal).onAbort(told)
      outer.abort()
    },
    want: 1,
  },
  {
    name: 'is not called by the outer signal, after release',
    run: (told) => {
      const outer = new AbortController()
      const cancellation = new Cancellation(outer.signal)
      cancellation.onAbort(told)
      cancellation.release()
      outer.abort()
    },
    want: 0,
  },
]
for (const { name, run, want } of listened) {
  test(`an onAbort listener ${name}`, () => {
    let times = 0
    run(() => times++)
    assert.equal(times, want)
  })
}
