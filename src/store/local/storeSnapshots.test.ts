import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { openLmdbStore } from '../drivers/lmdb.ts'
import { importIntoLmdb } from '../drivers/lmdbImport.ts'
import { createMemoryStore } from '../drivers/memory.ts'
import type { LocalStore, StoredChange, StoreSnapshot } from '../store.ts'

const folders: string[] = []
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'skiff-snapshots-'))
  folders.push(folder)
  return folder
}

const openFile = (folder: string) => openLmdbStore({ path: join(folder, 'data.mdb'), clock: new VirtualClock(), log: noLog })
const put = (store: LocalStore, key: string, value: string, lease?: bigint) =>
  store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.from(value), ...(lease ? { lease } : {}) }] })
const remove = (store: LocalStore, from: string) => store.transact({ compare: [], success: [{ type: 'delete', from }] })

async function contentOf(snapshot: StoreSnapshot): Promise<string[]> {
  const found: string[] = []
  for await (const changes of snapshot.changes())
    for (const one of changes) found.push(`${one.modRevision} ${one.key}=${one.version === 0 ? 'deleted' : Buffer.from(one.value)}`)
  return found
}

const stores = [
  { name: 'in memory', open: async () => createMemoryStore({ clock: new VirtualClock() }) },
  { name: 'in a file', open: async () => openFile(await newFolder()) },
]

for (const { name, open } of stores) {
  test(`ETC-20 a snapshot of a store ${name} has the history up to its revision, and none of later writes`, async () => {
    const store = await open()
    await put(store, 'a', '1')
    await put(store, 'a', '2')
    await remove(store, 'a')
    const snapshot = await store.snapshot()
    await put(store, 'b', '3')
    assert.deepEqual([snapshot.revision, await contentOf(snapshot)], [4, ['2 a=1', '3 a=2', '4 a=deleted']])
    snapshot.close()
    await store.close()
  })

  test(`ETC-12 a snapshot of a store ${name} leaves out what etcd's compaction removes`, async () => {
    const store = await open()
    for (const value of ['1', '2', '3']) await put(store, 'a', value)
    await put(store, 'b', '1')
    await remove(store, 'b')
    await store.compact(6)
    await put(store, 'c', '1')
    const snapshot = await store.snapshot()
    assert.deepEqual([snapshot.compactRevision, await contentOf(snapshot)], [6, ['4 a=3', '6 b=deleted', '7 c=1']])
    snapshot.close()
    await store.close()
  })

  test(`ETC-20 a compaction of a store ${name} removes nothing that an open snapshot reads`, async () => {
    const store = await open()
    for (const value of ['1', '2', '3']) await put(store, 'a', value)
    const snapshot = await store.snapshot()
    const compacted = store.compact(4)
    await put(store, 'a', '4')
    assert.deepEqual(await contentOf(snapshot), ['2 a=1', '3 a=2', '4 a=3'])
    snapshot.close()
    await compacted
    await store.close()
  })

  test(`ETC-20 a store ${name} closes although a snapshot is open and a compaction waits, and the snapshot fails`, async () => {
    const store = await open()
    for (const value of ['1', '2', '3']) await put(store, 'a', value)
    const snapshot = await store.snapshot()
    const compacted = store.compact(4).catch(() => {})
    await store.close()
    await compacted
    await assert.rejects(contentOf(snapshot), { code: 'closed' })
    await assert.rejects(store.snapshot(), { code: 'closed' })
  })
}

test('ETC-13 a defragmentation during writes loses none of them, and leaves no other file', async () => {
  const folder = await newFolder()
  const store = await openFile(folder)
  const values = Array.from({ length: 400 }, (_, at) => String(at))
  const writes = values.map(async (value) => {
    if (Number(value) % 100 === 50) await store.defragment()
    await put(store, `k${value}`, value.repeat(50))
  })
  await Promise.all(writes)
  assert.equal((await store.range('k', 'l')).kvs.length, values.length)
  await store.close()
  assert.deepEqual((await readdir(folder)).sort(), ['data.mdb', 'data.mdb-journal', 'data.mdb-lock'])
  const again = await openFile(folder)
  const { kvs } = await again.range('k', 'l')
  assert.deepEqual(kvs.map(({ key, value }) => [key, Buffer.from(value).toString()]).sort(), values.map((value) => [`k${value}`, value.repeat(50)]).sort())
  await again.close()
})

test('ETC-14 ETC-20 leases of 63 bits survive a restart, with their keys', async () => {
  const folder = await newFolder()
  const id = 2n ** 62n + 1n
  const store = await openFile(folder)
  assert.equal(await store.grantLease(60, id), id)
  await put(store, 'leased', '1', id)
  await put(store, 'leased-too', '1', id)
  await store.close()
  const again = await openFile(folder)
  assert.deepEqual(again.lease(id)?.keys, ['leased', 'leased-too'])
  assert.deepEqual((await again.transact({ compare: [{ key: 'leased', target: 'lease', op: '=', value: id }], success: [] })).succeeded, true)
  assert.deepEqual((await again.transact({ compare: [{ key: 'leased', target: 'lease', op: '>', value: 7 }], success: [] })).succeeded, true)
  await again.revokeLease(id)
  await again.close()
  const last = await openFile(folder)
  assert.deepEqual([(await last.range('leased', 'm')).count, last.leaseIds()], [0, []])
  await last.close()
})

test('ETC-20 a store that was imported with a compaction above every change continues after it, and serves nothing before', async () => {
  const folder = await newFolder()
  const change: StoredChange = { key: 'a', value: Buffer.from('1'), createRevision: 2, modRevision: 2, version: 1, lease: 0, sub: 0 }
  const file = importIntoLmdb(join(folder, 'data.mdb'))
  await file.add([change])
  await file.add([{ ...change, key: 'b', sub: 1 }])
  await file.end({ leases: [{ id: 5, ttlSeconds: 60 }], compactRevision: 1000 })
  await file.close()
  const store = await openFile(folder)
  assert.equal(store.latestRevision(), 1000)
  assert.deepEqual(
    (await store.range('', '\0')).kvs.map(({ key, modRevision }) => [key, modRevision]),
    [
      ['a', 2],
      ['b', 2],
    ],
  )
  await assert.rejects(store.range('a', undefined, { revision: 999 }), { code: 'compacted' })
  await assert.rejects(
    store.watch({ from: 'a', startRevision: 500 }, () => {}, new AbortController().signal),
    { code: 'compacted' },
  )
  assert.equal((await put(store, 'a', '2')).revision, 1001)
  assert.deepEqual(store.leaseIds(), [5])
  await store.close()
})
