import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { abortScope, deadlineScope } from './abortScope.ts'
import { VirtualClock } from './virtualClock.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

test('a scope aborts with the reason of the first source that aborts, and leaves the others', () => {
  const [first, second] = [new AbortController(), new AbortController()]
  const scope = abortScope(first.signal, undefined, second.signal)
  second.abort('second')
  first.abort('first')
  assert.equal(scope.signal.reason, 'second')
  assert.equal(listeners(first.signal), 0)
})

test('a scope of a source that has aborted is aborted from the start and arms no timer', () => {
  const clock = new VirtualClock()
  const live = new AbortController()
  const scope = deadlineScope({ clock, ms: 10 }, AbortSignal.abort('over'), live.signal)
  assert.equal(scope.signal.reason, 'over')
  assert.deepEqual([listeners(live.signal), clock.nextTimerMs()], [0, undefined])
})

test('a scope aborts at its deadline with a TimeoutError, or with the reason of the caller', async () => {
  const clock = new VirtualClock()
  const standard = deadlineScope({ clock, ms: 10 })
  const own = deadlineScope({ clock, ms: 10, reason: () => 'too late' })
  await clock.advance(9)
  assert.equal(standard.signal.aborted, false)
  await clock.advance(1)
  const { name, message } = standard.signal.reason as DOMException
  assert.deepEqual([name, message, own.signal.reason], ['TimeoutError', 'context deadline exceeded', 'too late'])
})

test('a scope that is aborted by its owner leaves its sources', () => {
  const source = new AbortController()
  const scope = abortScope(source.signal)
  scope.abort('mine')
  assert.deepEqual([scope.signal.reason, source.signal.aborted, listeners(source.signal)], ['mine', false, 0])
})

test('a scope that is disposed of follows nothing any more', async () => {
  const clock = new VirtualClock()
  const source = new AbortController()
  const scope = deadlineScope({ clock, ms: 10 }, source.signal)
  scope[Symbol.dispose]()
  assert.deepEqual([listeners(source.signal), clock.nextTimerMs()], [0, undefined])
  source.abort()
  await clock.advance(20)
  assert.equal(scope.signal.aborted, false)
})

test('a deadline fires although only a listener on the signal is left, under garbage-collection pressure', async () => {
  const clock = new VirtualClock()
  const stop = new AbortController()
  let fired = 0
  // The scopes themselves are unreachable after this loop.
  for (let i = 0; i < 100; i++) deadlineScope({ clock, ms: 10 }, stop.signal).signal.addEventListener('abort', () => fired++)
  collectGarbage()
  await clock.advance(10)
  assert.deepEqual([fired, listeners(stop.signal)], [100, 0])
})

test('100,000 scopes with listeners leave nothing on a source that lives on', async () => {
  const clock = new VirtualClock()
  const stop = new AbortController()
  const request = () => {
    using scope = deadlineScope({ clock, ms: 30_000 }, stop.signal)
    scope.signal.addEventListener('abort', () => assert.fail('the request has ended'))
  }
  const heapAfter = async (requests: number) => {
    for (let i = 0; i < requests; i++) request()
    // Cancelled timers leave the clock when it passes them.
    await clock.advance(60_000)
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const before = await heapAfter(1_000)
  const grownBytes = (await heapAfter(100_000)) - before
  assert.equal(listeners(stop.signal), 0)
  assert.ok(grownBytes < 2_000_000, `the heap has grown by ${grownBytes} bytes`)
  stop.abort()
})
