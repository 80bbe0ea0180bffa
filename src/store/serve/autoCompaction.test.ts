import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '../drivers/memory.ts'
import { storeError } from '../storeError.ts'
import { type AutoCompaction, autoCompaction } from './autoCompaction.ts'

async function compacting(
  kept: AutoCompaction,
  during: (world: { pass: (ms: number) => Promise<void>; compacted: () => number; write: (times: number) => Promise<void> }) => Promise<void>,
) {
  const clock = new VirtualClock()
  const store = createMemoryStore({ clock })
  const stopping = new AbortController()
  const running = autoCompaction({ store, clock, log: noLog }, kept).run(stopping.signal)
  const write = async (times: number) => {
    for (let i = 0; i < times; i++) await store.transact({ compare: [], success: [{ type: 'put', key: 'a', value: Buffer.of(i) }] })
  }
  // A compaction lets the platform's event loop have its turns.
  const pass = async (ms: number) => {
    await clock.advance(ms)
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  await during({ pass, write, compacted: () => store.compactRevision() })
  stopping.abort()
  await running
}

test('ETC-12 compaction by age keeps the revisions of a period', () =>
  compacting({ periodMs: 600_000 }, async ({ pass, write, compacted }) => {
    await write(9)
    await pass(300_000)
    await write(10)
    await pass(299_000)
    assert.equal(compacted(), 0)
    await pass(62_000)
    assert.equal(compacted(), 10)
    await pass(300_000)
    assert.equal(compacted(), 20)
  }))

test('ETC-12 compaction by number keeps the newest revisions', () =>
  compacting({ revisions: 5 }, async ({ pass, write, compacted }) => {
    await write(9)
    await pass(301_000)
    assert.equal(compacted(), 5)
    await write(10)
    await pass(300_000)
    assert.equal(compacted(), 15)
  }))

test('ETC-12 a compaction that fails is followed by the next one', async () => {
  const clock = new VirtualClock()
  const store = createMemoryStore({ clock })
  const compact = store.compact.bind(store)
  let fails = true
  store.compact = (revision) => (fails ? Promise.reject(storeError('noSpace')) : compact(revision))
  const stopping = new AbortController()
  const running = autoCompaction({ store, clock, log: noLog }, { revisions: 5 }).run(stopping.signal)
  for (let i = 0; i < 9; i++) await store.transact({ compare: [], success: [{ type: 'put', key: 'a', value: Buffer.of(i) }] })
  await clock.advance(301_000)
  assert.equal(store.compactRevision(), 0)
  fails = false
  await clock.advance(300_000)
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(store.compactRevision(), 5)
  stopping.abort()
  await running
})
