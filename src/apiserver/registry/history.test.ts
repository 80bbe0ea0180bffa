import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import { storeError } from '#store/storeError'
import { changedStore } from '#testing/changedStore'
import { type HistoryLimits, historyStatus, keepHistory } from './history.ts'
import { RevisionTimes } from './revisionTimes.ts'

const minuteMs = 60_000
const startMs = Date.parse('2026-01-01T00:00:00Z')
const gibibyte = 2 ** 30

/** One server's part over a store; `put` notes its revision as the cacher does. */
function keeping(limits: HistoryLimits, clock = new VirtualClock('2026-01-01T00:00:00Z'), store: Store = createMemoryStore({ clock })) {
  const times = new RevisionTimes()
  const put = async (bytes = 2) => {
    const { revision } = await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/x/a', value: Buffer.alloc(bytes) }] })
    times.note(revision, clock.now())
    return revision
  }
  const isReadable = (revision: number) =>
    store.range('/registry/x/a', undefined, { revision }).then(
      () => true,
      () => false,
    )
  const stop = new AbortController()
  const running = keepHistory({ store, times, clock, log: noLog }, limits, stop.signal)
  const close = async () => {
    stop.abort()
    await running
  }
  return { clock, store, times, put, isReadable, close }
}

test('X5 history is readable for its age and compacted afterwards', async () => {
  const { clock, put, isReadable, close } = keeping({ keepMs: 10 * minuteMs, maxBytes: gibibyte })
  const first = await put()
  await clock.advance(2 * minuteMs)
  const second = await put()
  await clock.advance(9 * minuteMs)
  await put()
  assert.deepEqual(await Promise.all([first, second].map(isReadable)), [true, true], 'the first is the state of ten minutes ago')
  await clock.advance(2 * minuteMs)
  assert.deepEqual(await Promise.all([first, second].map(isReadable)), [false, true])
  await close()
})

test('X5 the size limit gives up the oldest history before its age, and keeps the rest below the limit', async () => {
  const { clock, put, isReadable, store, close } = keeping({ keepMs: 60 * minuteMs, maxBytes: 50_000 })
  const revisions: number[] = []
  for (let at = 0; at < 100; at++) {
    revisions.push(await put(1_000))
    await clock.advance(5_000)
    // A compaction takes turns of the event loop, which the clock does not wait for.
    await immediate()
  }
  const { historyBytes = 0 } = await store.size()
  assert.ok(historyBytes <= 50_000 && historyBytes > 25_000, `${historyBytes} bytes`)
  assert.deepEqual(await Promise.all([revisions[10] as number, revisions[90] as number].map(isReadable)), [false, true])
  await close()
})

test('X5 times of revisions survive a restart, to a minute, and their table shrinks with the history', async () => {
  const limits = { keepMs: 10 * minuteMs, maxBytes: gibibyte }
  const before = keeping(limits)
  const { clock, store } = before
  const first = await before.put()
  await clock.advance(5 * minuteMs)
  await before.close()
  const after = keeping(limits, clock, store)
  await clock.advance(1)
  assert.ok((after.times.at(startMs + 4 * minuteMs) ?? 0) >= first)
  assert.equal((await historyStatus({ store, times: after.times })).oldestMs, startMs)
  const entries = async () => (await store.range('/skiff/revisions/', '/skiff/revisions0', { countOnly: true })).count
  for (let minute = 0; minute < 30; minute++) {
    await after.put()
    await clock.advance(minuteMs)
  }
  assert.ok((await entries()) <= 13, `${await entries()} entries`)
  await after.close()
})

test('X5 two servers over one store write one entry a minute', async () => {
  const limits = { keepMs: 60 * minuteMs, maxBytes: gibibyte }
  const one = keeping(limits)
  const other = keeping(limits, one.clock, one.store)
  await one.clock.advance(5 * minuteMs - 1)
  assert.equal((await one.store.range('/skiff/revisions/', '/skiff/revisions0', { countOnly: true })).count, 5)
  await one.close()
  await other.close()
})

test('X5 a store that refuses writes because it is full is compacted all the same', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const full = changedStore(store, { transact: async () => Promise.reject(storeError('noSpace')) })
  const { times, isReadable, close } = keeping({ keepMs: minuteMs, maxBytes: gibibyte }, clock, full)
  for (let at = 0; at < 5; at++) {
    const { revision } = await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/x/a', value: Buffer.from('{}') }] })
    times.note(revision, clock.now())
    await clock.advance(minuteMs)
  }
  assert.deepEqual(await Promise.all([2, 6].map(isReadable)), [false, true])
  await close()
})

test('X5 a store that counts its objects with the history keeps five minutes of history, however large it is', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const memory = createMemoryStore({ clock })
  const whole = changedStore(memory, { size: async () => ({ totalBytes: gibibyte, liveBytes: gibibyte }) })
  const { put, isReadable, close } = keeping({ keepMs: 60 * minuteMs, maxBytes: gibibyte / 2 }, clock, whole)
  const revisions: number[] = []
  for (let minute = 0; minute < 10; minute++) {
    revisions.push(await put())
    await clock.advance(minuteMs)
    await immediate()
  }
  assert.deepEqual(await Promise.all([revisions[2] as number, revisions[7] as number].map(isReadable)), [false, true])
  await close()
})

test('X5 over a store that does not say what it compacted, revisions before a clock was set back remain readable', async () => {
  const clock = new VirtualClock('2026-01-01T01:00:00Z')
  const memory = createMemoryStore({ clock })
  const store = changedStore(memory, { range: async () => Promise.reject(storeError('compacted')) })
  const times = new RevisionTimes()
  times.note(1, clock.now())
  times.note(7, clock.now() - 30 * minuteMs)
  assert.deepEqual(await historyStatus({ store, times }).then(({ oldestRevision, oldestMs }) => [oldestRevision, oldestMs]), [1, startMs + 30 * minuteMs])
})
