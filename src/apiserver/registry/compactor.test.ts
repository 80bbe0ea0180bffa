import assert from 'node:assert/strict'
import test from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import type { Revision, Store } from '#store/store'
import { storeError } from '#store/storeError'
import { changedStore } from '#testing/changedStore'
import { compactRevKey, lastTurn } from './compactionTurn.ts'
import { compactRegularly } from './compactor.ts'
import { keepHistory } from './history.ts'
import { RevisionTimes } from './revisionTimes.ts'

const intervalMs = 1_000
const startedAt = '2026-01-01T00:00:00Z'

/** A store with the compactors of so many servers, and whether revisions can still be read. */
function compacted(ms: number, servers = 1, clock = new VirtualClock(startedAt), inner: Store = createMemoryStore({ clock })) {
  const compactions: Revision[] = []
  const store = changedStore(inner, {
    compact: (revision) => {
      compactions.push(revision)
      return inner.compact(revision)
    },
  })
  const put = async () => (await inner.transact({ compare: [], success: [{ type: 'put', key: '/registry/x/a', value: Buffer.from('{}') }] })).revision
  const readable = (revision: number) =>
    inner.range('/registry/x/a', undefined, { revision }).then(
      () => true,
      () => false,
    )
  const stop = new AbortController()
  const times = Array.from({ length: servers }, () => new RevisionTimes())
  const running = times.map((of) => compactRegularly({ store, times: of, clock, log: noLog }, ms, stop.signal))
  const close = () => {
    stop.abort()
    return Promise.all(running)
  }
  return { clock, store: inner, put, readable, compactions, times, close }
}

test('ETC-12 history older than the interval is compacted, younger history is not', async () => {
  const { clock, put, readable, close } = compacted(intervalMs)
  const first = await put()
  await clock.advance(intervalMs)
  const second = await put()
  const third = await put()
  assert.deepEqual(await Promise.all([first, second, third].map(readable)), [true, true, true])
  await clock.advance(intervalMs)
  assert.deepEqual(await Promise.all([first, second, third].map(readable)), [false, true, true])
  await close()
})

test('ETC-12 an interval of 0 compacts nothing and writes nothing', async () => {
  const { clock, put, readable, store, close } = compacted(0)
  const first = await put()
  const second = await put()
  await clock.advance(3 * 300_000)
  assert.equal(await readable(first), true)
  assert.equal(await store.latestRevision(), second)
  await close()
})

test('ETC-12 of two servers over one store, one compacts at each interval, and the other forgets the same times', async () => {
  const { clock, put, store, compactions, times, close } = compacted(intervalMs, 2)
  const [, other] = times
  for (let round = 0; round < 5; round++) {
    other?.note(await put(), clock.now())
    await clock.advance(intervalMs)
  }
  const { version, compacted: newest } = await lastTurn(store)
  assert.ok(version >= 4 && version <= 5, `${version} turns in five intervals`)
  // The first turn has nothing to compact.
  assert.deepEqual([compactions.length, new Set(compactions).size, compactions.at(-1)], [version - 1, version - 1, newest])
  await clock.advance(intervalMs)
  assert.ok((other?.first ?? 0) >= (compactions.at(-2) ?? Infinity), `${other?.first}`)
  await close()
})

test('ETC-12 after another server took the turn, a server waits a whole interval, and then compacts what was there when it learned of it', async () => {
  const { clock, put, store, compactions, close } = compacted(intervalMs)
  await put()
  // Upstream's server, half an interval later.
  await clock.advance(intervalMs / 2)
  await store.transact({
    compare: [{ key: compactRevKey, target: 'version', op: '=', value: 0 }],
    success: [{ type: 'put', key: compactRevKey, value: Buffer.from('0') }],
  })
  await put()
  await clock.advance(intervalMs / 2)
  assert.deepEqual(compactions, [], 'not this time')
  const learned = await store.latestRevision()
  await put()
  await clock.advance(intervalMs)
  assert.deepEqual(compactions, [learned])
  assert.equal(String(Buffer.from((await store.range(compactRevKey)).kvs[0]?.value ?? [])), String(learned))
  await close()
})

test('ETC-12 a value of the key that is no revision is taken for none', async () => {
  for (const text of ['', 'x', '-5', '1e3', '9'.repeat(40)]) {
    const store = createMemoryStore({ clock: new VirtualClock(startedAt) })
    await store.transact({ compare: [], success: [{ type: 'put', key: compactRevKey, value: Buffer.from(text) }] })
    assert.deepEqual(await lastTurn(store), { version: 1, revision: 2, compacted: 0, isOwn: false }, text)
  }
})

test('ETC-15 a store that is full is compacted all the same, though it takes no key', async () => {
  const clock = new VirtualClock(startedAt)
  const inner = createMemoryStore({ clock })
  let isFull = false
  const store = changedStore(inner, { transact: (of) => (isFull ? Promise.reject(storeError('noSpace')) : inner.transact(of)) })
  const { put, readable, close } = compacted(intervalMs, 1, clock, store)
  const first = await put()
  await put()
  await clock.advance(intervalMs)
  isFull = true
  await clock.advance(intervalMs)
  assert.equal(await readable(first), false)
  await close()
})

test('X5 a server that keeps history holds off one over the same store that does not', async () => {
  const clock = new VirtualClock(startedAt)
  const store = createMemoryStore({ clock })
  const { put, readable, compactions, close } = compacted(300_000, 1, clock, store)
  const stop = new AbortController()
  const keeping = keepHistory({ store, times: new RevisionTimes(), clock, log: noLog }, { keepMs: 3_600_000, maxBytes: 2 ** 30 }, stop.signal)
  const first = await put()
  for (let minute = 0; minute < 30; minute++) {
    await put()
    await clock.advance(60_000)
  }
  assert.deepEqual(compactions, [])
  assert.equal(await readable(first), true)
  stop.abort()
  await Promise.all([keeping, close()])
})
