import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { describeStore, put, remove, show, write } from '#testing/storeConformance'
import { closeFiles, openFiles } from '../local/backends/lmdb.ts'
import type { AuthBucket, LocalStore } from '../store.ts'
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

const authEntry = (bucket: AuthBucket, key: string, value: string) => ({ bucket, key, value: Buffer.from(value) })
const authOf = (store: LocalStore) => store.authEntries().map(({ bucket, key, value }) => `${bucket}/${key}=${Buffer.from(value)}`)

test('ETC-24 users and roles are there after opening again and after a crash, and are no keys', async () => {
  const path = newPath()
  const reopen = (file: string) => openLmdbStore({ path: file, clock: new VirtualClock(), log: noLog })
  const store = await reopen(path)
  await store.writeAuth([authEntry('authUsers', 'a\0\xff', '1'), authEntry('authUsers', 'b', '2'), authEntry('auth', 'authRevision', '3')])
  await store.writeAuth([{ bucket: 'authUsers', key: 'b' }, authEntry('authUsers', 'a\0\xff', '4'), authEntry('authRoles', 'a', '')])
  const wanted = ['authUsers/a\0\xff=4', 'auth/authRevision=3', 'authRoles/a=']
  assert.deepEqual(authOf(store), wanted)
  assert.deepEqual([await store.latestRevision(), (await store.range('\0', '\0')).count], [1, 0])
  // A crash leaves all of it in the journal, and none of it in the file.
  const crashed = newPath()
  for (const part of ['', '-journal']) copyFileSync(`${path}${part}`, `${crashed}${part}`)
  await store.close()
  for (const file of [path, crashed]) {
    const again = await reopen(file)
    assert.deepEqual(authOf(again).sort(), wanted.toSorted())
    await again.close()
  }
})

test('ETC-24 a full store refuses new users, and removes those that are there', async () => {
  const store = await openLmdbStore({ path: newPath(), clock: new VirtualClock(), log: noLog, quotaBytes: 200_000 })
  await store.writeAuth([authEntry('authUsers', 'a', '1')])
  await write(store, put('a', 'x'.repeat(300_000)))
  await assert.rejects(store.writeAuth([authEntry('authUsers', 'b', '1')]), (error: { code?: string }) => error.code === 'noSpace')
  await store.writeAuth([{ bucket: 'authUsers', key: 'a' }])
  assert.deepEqual(authOf(store), [])
  await store.close()
})

test('ETC-24 only a store with users or roles has the format that earlier versions refuse', async () => {
  const path = newPath()
  const formatIn = async () => {
    const files = openFiles(path)
    const format = files.facts.get('format')
    await closeFiles(files)
    return format
  }
  for (const [change, format] of [
    [(store: LocalStore) => write(store, put('a', '1')), 2],
    [(store: LocalStore) => store.writeAuth([authEntry('authUsers', 'a', '1')]), 3],
    [(store: LocalStore) => write(store, put('a', '2')), 3],
  ] as const) {
    const store = await openLmdbStore({ path, clock: new VirtualClock(), log: noLog })
    await change(store)
    await store.close()
    assert.equal(await formatIn(), format)
  }
})

test('ETC-10 a journal that a crash left stays as it is while the store is damaged, and its changes are there after the repair', async () => {
  const [path, crashed] = [newPath(), newPath()]
  const reopen = (file: string) => openLmdbStore({ path: file, clock: new VirtualClock(), log: noLog })
  let store = await reopen(path)
  await write(store, put('a', '1'))
  await store.close()
  store = await reopen(path)
  await write(store, put('b', '1'))
  for (const suffix of ['', '-journal']) copyFileSync(`${path}${suffix}`, `${crashed}${suffix}`)
  await store.close()
  /** Exchanges the record of the first revision. */
  const exchange = async (record: Buffer) => {
    const files = openFiles(crashed)
    const before = Buffer.from(files.records.getBinary(2) ?? assert.fail('no record'))
    await files.records.put(2, record)
    await files.root.flushed
    await closeFiles(files)
    return before
  }
  const good = await exchange(Buffer.from('x'))
  const bytes = () => ['', '-journal'].map((suffix) => readFileSync(`${crashed}${suffix}`))
  const damaged = bytes()
  await assert.rejects(reopen(crashed), /is damaged \(.*\): put it back from a copy, or restore a snapshot/)
  assert.deepEqual(bytes(), damaged)
  await exchange(good)
  store = await reopen(crashed)
  assert.equal(await show(store, 'a', 'z'), 'a=1@2/2/1 b=1@3/3/1')
  await store.close()
})
