import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { aborted, orAborted, unlessAborted } from './orAborted.ts'

const listeners = ({ signal }: AbortController) => getEventListeners(signal, 'abort').length
const never = new Promise<never>(() => {})

test('a wait settles as its work does and leaves no listener', async () => {
  const stop = new AbortController()
  for (const wait of [orAborted, unlessAborted]) {
    assert.equal(await wait(Promise.resolve(1), stop.signal), 1)
    await assert.rejects(wait(Promise.reject(new Error('failed')), stop.signal), /^Error: failed$/)
    assert.equal(listeners(stop), 0)
  }
})

test('a wait for work that does not end ends with the signal and leaves no listener', async () => {
  const stop = new AbortController()
  const waits = [assert.rejects(orAborted(never, stop.signal), /^Error: over$/), unlessAborted(never, stop.signal), aborted(stop.signal)]
  assert.equal(listeners(stop), 3)
  stop.abort(new Error('over'))
  assert.deepEqual(await Promise.all(waits), [undefined, undefined, undefined])
  assert.equal(listeners(stop), 0)
})

test('a signal that has aborted ends each wait at once, also for work that is done', async () => {
  const signal = AbortSignal.abort(new Error('over'))
  await assert.rejects(orAborted(Promise.resolve(1), signal), /^Error: over$/)
  assert.equal(await unlessAborted(Promise.resolve(1), signal), undefined)
  assert.equal(await aborted(signal), undefined)
})

test('work that fails after the abort is no unhandled rejection', async () => {
  const stop = new AbortController()
  let fail = (_error: Error) => {}
  const work = new Promise<never>((_, reject) => {
    fail = reject
  })
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  const waits = [assert.rejects(orAborted(work, stop.signal), /over/), unlessAborted(work, stop.signal)]
  stop.abort(new Error('over'))
  await Promise.all(waits)
  fail(new Error('late'))
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', note)
  assert.deepEqual(unhandled, [])
})

test('a hundred waits on one signal cause no warning', async () => {
  const stop = new AbortController()
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  const waits = Array.from({ length: 100 }, () => aborted(stop.signal))
  await new Promise((resolve) => setImmediate(resolve))
  stop.abort()
  await Promise.all(waits)
  process.off('warning', note)
  assert.deepEqual(warnings, [])
})
