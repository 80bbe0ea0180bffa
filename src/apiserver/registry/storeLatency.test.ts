import assert from 'node:assert/strict'
import test from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { RequestAudit } from '../core/request.ts'
import { latencyMeasure } from './storeLatency.ts'

test('API-21 latencyMeasure records the time of work that returns, resolves or fails, and passes on its result', async () => {
  const clock = new VirtualClock()
  const spent: [string, number][] = []
  const audit: RequestAudit = { spent: (layer, ms) => void spent.push([layer, ms]), requestObject() {}, requestPatch() {}, annotate() {} }
  const measure = latencyMeasure(clock, audit)
  assert.equal(
    measure('etcd', () => 1),
    1,
  )
  const late = measure('etcd', () => clock.sleep(20).then(() => 2))
  const failing = measure('decode-response-object', () => clock.sleep(30).then(() => Promise.reject(new Error('unreadable'))))
  const refused = assert.rejects(failing, /unreadable/)
  await clock.advance(30)
  assert.equal(await late, 2)
  await refused
  assert.deepEqual(spent, [
    ['etcd', 0],
    ['etcd', 20],
    ['decode-response-object', 30],
  ])
})
