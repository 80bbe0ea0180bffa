import assert from 'node:assert/strict'
import test from 'node:test'
import { createRealClock } from './realClock.ts'

test('CGO-05 a hundred sleeps may share a signal without a warning of Node', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  const stop = new AbortController()
  const clock = createRealClock()
  const sleeps = Array.from({ length: 100 }, () => clock.sleep(60_000, stop.signal))
  stop.abort(new Error('stopped'))
  const results = await Promise.allSettled(sleeps)
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  assert.deepEqual(warnings, [])
  assert.ok(results.every((result) => result.status === 'rejected' && result.reason.message === 'stopped'))
})
