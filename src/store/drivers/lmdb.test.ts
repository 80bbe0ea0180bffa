import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { describeStore, put, remove, show, write } from '#testing/storeConformance'
import { openLmdbStore } from './lmdb.ts'

const folder = mkdtempSync(join(tmpdir(), 'skiff-lmdb-'))
after(() => rmSync(folder, { recursive: true, force: true }))
let stores = 0
const newPath = () => join(folder, `${stores++}.lmdb`)

describeStore({ name: 'lmdb', open: (clock) => openLmdbStore({ path: newPath(), clock, log: noLog, maxLogBytes: 64 }) })

for (const { name, isThere } of [
  { name: 'new', isThere: false },
  { name: 'there already and open to others', isThere: true },
]) {
  test(`ETC-10 every file of the store belongs to its owner alone, the files are ${name}`, async () => {
    const path = newPath()
    const files = [path, `${path}-lock`, `${path}-journal`]
    const before = process.umask(0)
    try {
      if (isThere) for (const file of files) writeFileSync(file, '', { mode: 0o666 })
      await (await openLmdbStore({ path, clock: new VirtualClock(), log: noLog })).close()
    } finally {
      process.umask(before)
    }
    assert.deepEqual(
      files.map((file) => statSync(file).mode & 0o777),
      [0o600, 0o600, 0o600],
    )
  })
}

test('ETC-10 what was acknowledged is there after opening again: history, leases and compaction', async () => {
  const path = newPath()
  const clock = new VirtualClock()
  const reopen = () => openLmdbStore({ path, clock, log: noLog })
  let store = await reopen()
  const lease = await store.grantLease(10)
  await write(store, put('a', '1'), put('b', '1', lease), put('c', '1'))
  await write(store, put('a', '2'))
  await write(store, remove('c'))
  await store.close()
  store = await reopen()
  assert.deepEqual([await store.latestRevision(), await show(store, 'a', 'z', { revision: 2 })], [4, 'a=1@2/2/1 b=1@2/2/1 c=1@2/2/1'])
  await write(store, put('a', '3'))
  await store.compact(5)
  await store.close()
  store = await reopen()
  assert.equal(await show(store, 'a', 'z'), 'a=3@2/5/3 b=1@2/2/1', 'a forgotten tombstone does not bring its key back')
  await assert.rejects(store.range('a', undefined, { revision: 4 }))
  await clock.advance(10_001)
  await store.close()
  store = await reopen()
  assert.equal(await show(store, 'a', 'z'), 'a=3@2/5/3')
  await store.close()
})

test('a full store refuses puts, still reads and deletes', async () => {
  const store = await openLmdbStore({ path: newPath(), clock: new VirtualClock(), log: noLog, quotaBytes: 200_000 })
  await write(store, put('a', 'x'.repeat(300_000)))
  await assert.rejects(write(store, put('b', '1')), (error: { code?: string }) => error.code === 'noSpace')
  assert.equal((await store.range('a')).kvs[0]?.value.length, 300_000)
  await write(store, remove('a'))
  await store.close()
})
