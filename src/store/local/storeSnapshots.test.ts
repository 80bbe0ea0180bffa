import assert from 'node:assert/strict'
import fs from 'node:fs'
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, mock, test } from 'node:test'
import { open } from 'lmdb'
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

// A number holds the second one exactly.
for (const id of [2n ** 62n + 1n, 2n ** 62n]) {
  test(`ETC-14 ETC-20 the lease ${id} of 63 bits survives a restart, with its keys`, async () => {
    const folder = await newFolder()
    const store = await openFile(folder)
    assert.equal(await store.grantLease(60, id), id)
    await put(store, 'leased', '1', id)
    await put(store, 'leased-too', '1', id)
    await store.close()
    const again = await openFile(folder)
    assert.deepEqual([...again.leaseKeys(id)].sort(), ['leased', 'leased-too'])
    assert.deepEqual((await again.transact({ compare: [{ key: 'leased', target: 'lease', op: '=', value: id }], success: [] })).succeeded, true)
    assert.deepEqual((await again.transact({ compare: [{ key: 'leased', target: 'lease', op: '>', value: 7 }], success: [] })).succeeded, true)
    await again.revokeLease(id)
    await again.close()
    const last = await openFile(folder)
    assert.deepEqual([(await last.range('leased', 'm')).count, last.leaseIds()], [0, []])
    await last.close()
  })
}

test('ETC-20 a store that was imported with a compaction above every change continues after it, and serves nothing before', async () => {
  const folder = await newFolder()
  const change: StoredChange = { key: 'a', value: Buffer.from('1'), createRevision: 2, modRevision: 2, version: 1, lease: 0, sub: 0 }
  const file = importIntoLmdb(join(folder, 'data.mdb'))
  await file.add([change])
  await file.add([{ ...change, key: 'b', sub: 1 }])
  await file.end({ leases: [{ id: 5, ttlSeconds: 60 }], auth: [], compactRevision: 1000 })
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

test('ETC-14 ETC-20 a lease of 63 bits that a crash left in the journal alone is there afterwards, with its keys', async () => {
  const [folder, left] = [await newFolder(), await newFolder()]
  const id = 2n ** 62n
  const store = await openFile(folder)
  await store.grantLease(60, id)
  await put(store, 'leased', '1', id)
  // What a crash here would leave.
  for (const name of await readdir(folder)) await copyFile(join(folder, name), join(left, name))
  await store.close()
  const again = await openFile(left)
  assert.deepEqual([...again.leaseKeys(id)], ['leased'])
  await again.close()
})

test('ETC-10 a store that a newer version wrote is refused and stays as it is, and one without a format is opened', async () => {
  const folder = await newFolder()
  const path = join(folder, 'data.mdb')
  const store = await openFile(folder)
  await put(store, 'a', '1')
  await store.close()
  const setFormat = async (
    change: (facts: { put(key: string, value: number): Promise<boolean>; remove(key: string): Promise<boolean> }) => Promise<boolean>,
  ) => {
    const root = open({ path, noSubdir: true, maxDbs: 4 })
    await change(root.openDB<number, string>({ name: 'facts' }))
    await root.close()
  }
  await setFormat((facts) => facts.put('format', 4))
  const before = await readFile(path)
  await assert.rejects(openFile(folder), {
    message: `the store ${path} has the data format 4, and this version of Skiff reads formats up to 3: open it with the version that wrote it, or a newer one`,
  })
  assert.deepEqual(await readFile(path), before)
  await setFormat((facts) => facts.remove('format'))
  const again = await openFile(folder)
  assert.equal((await again.range('a')).count, 1)
  await put(again, 'b', '1')
  await again.close()
  const root = open({ path, noSubdir: true, maxDbs: 4, readOnly: true })
  assert.equal(root.openDB<number, string>({ name: 'facts' }).get('format'), 2)
  await root.close()
})

for (const { name, content } of [
  { name: 'text', content: 'apiVersion: v1\n'.repeat(1000) },
  { name: 'short', content: 'x' },
]) {
  test(`ETC-10 a file of a store that is ${name} is refused by name`, async () => {
    const folder = await newFolder()
    await writeFile(join(folder, 'data.mdb'), content)
    await assert.rejects(openFile(folder), /data\.mdb is no store of Skiff, or its beginning is damaged/)
    assert.equal(await readFile(join(folder, 'data.mdb'), 'utf8'), content)
  })
}

test('ETC-13 the copy of a defragmentation is open to its owner alone, and on the disk before it becomes the store', async () => {
  const folder = await newFolder()
  const store = await openFile(folder)
  await put(store, 'a', '1')
  const steps: string[] = []
  const { open: openFileHandle, rename } = fs.promises
  mock.method(fs.promises, 'open', async (...args: Parameters<typeof openFileHandle>) => {
    const handle = await openFileHandle(...args)
    const { sync } = handle
    handle.sync = async () => {
      steps.push(`sync ${relative(folder, String(args[0]))}`)
      await sync.call(handle)
    }
    return handle
  })
  mock.method(fs.promises, 'rename', async (from: string, to: string) => {
    steps.push(`rename to ${relative(folder, to)}, mode ${((await fs.promises.stat(dirname(from))).mode & 0o777).toString(8)} around it`)
    await rename(from, to)
  })
  syncBuiltinESMExports()
  try {
    await store.defragment()
  } finally {
    mock.restoreAll()
    syncBuiltinESMExports()
    await store.close()
  }
  assert.deepEqual(steps, ['sync data.mdb-copy/data.mdb', 'rename to data.mdb-lock, mode 700 around it', 'rename to data.mdb, mode 700 around it'])
})
