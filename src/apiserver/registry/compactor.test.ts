import assert from 'node:assert/strict'
import test from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import { compactionIntervalMs, compactRegularly } from './compactor.ts'

test('history older than five to ten minutes is compacted, younger history is not', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const put = async () => (await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/x/a', value: Buffer.from('{}') }] })).revision
  const readable = (revision: number) =>
    store.range('/registry/x/a', undefined, { revision }).then(
      () => true,
      () => false,
    )
  const stop = new AbortController()
  const running = compactRegularly({ store, clock, log: noLog }, stop.signal)
  const first = await put()
  const second = await put()
  await clock.advance(compactionIntervalMs)
  const third = await put()
  assert.deepEqual(await Promise.all([first, second, third].map(readable)), [true, true, true])
  await clock.advance(compactionIntervalMs)
  assert.deepEqual(await Promise.all([first, second, third].map(readable)), [false, true, true])
  stop.abort()
  await running
})
