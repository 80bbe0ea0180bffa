import assert from 'node:assert/strict'
import test from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import { compactRegularly } from './compactor.ts'
import { RevisionTimes } from './revisionTimes.ts'

const intervalMs = 1_000

/** A store with a compactor, and whether revisions can still be read. */
function compacted(ms: number) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const put = async () => (await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/x/a', value: Buffer.from('{}') }] })).revision
  const readable = (revision: number) =>
    store.range('/registry/x/a', undefined, { revision }).then(
      () => true,
      () => false,
    )
  const stop = new AbortController()
  const running = compactRegularly({ store, times: new RevisionTimes(), clock, log: noLog }, ms, stop.signal)
  const close = () => {
    stop.abort()
    return running
  }
  return { clock, put, readable, close }
}

test('ETC-04 history older than the interval is compacted, younger history is not', async () => {
  const { clock, put, readable, close } = compacted(intervalMs)
  const first = await put()
  const second = await put()
  await clock.advance(intervalMs)
  const third = await put()
  assert.deepEqual(await Promise.all([first, second, third].map(readable)), [true, true, true])
  await clock.advance(intervalMs)
  assert.deepEqual(await Promise.all([first, second, third].map(readable)), [false, true, true])
  await close()
})

test('ETC-04 an interval of 0 compacts nothing', async () => {
  const { clock, put, readable, close } = compacted(0)
  const first = await put()
  await put()
  await clock.advance(3 * 300_000)
  assert.equal(await readable(first), true)
  await close()
})
