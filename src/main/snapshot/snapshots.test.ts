/** ETC-20: `skiff snapshot` on the folders of clusters, without a server. */
import assert from 'node:assert/strict'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { noLog } from '#base/log'
import { createProgress } from '#cli/progress'
import type { Snapshots } from '#cli/snapshots'
import { createExec } from '#host/exec'
import { openLmdbStore } from '#store/drivers/lmdb'
import { realClock } from '#testing/realClock'
import { clusterPaths, readState, writeState } from '../localCluster/clusterState.ts'
import { rememberProcess } from '../localCluster/processes.ts'
import { createSnapshots } from './snapshots.ts'

const progress = createProgress({ write: () => {}, terminal: false, color: false, columns: 80, quiet: true, clock: realClock })
const plain = { bumpRevision: 0, skipHashCheck: false }
let home = ''
let snapshots: Snapshots
const fileOf = (name: string) => join(home, name)

/** Gives each test of the suite that calls it a home of its own. */
function useHome(): void {
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'skiff-home-'))
    snapshots = createSnapshots({ clock: realClock, exec: createExec(), isRoot: false, platform: 'linux', home, self: ['node', 'skiff'] })
  })
  afterEach(() => rm(home, { recursive: true, force: true }))
}

async function makeCluster(name: string, content: Readonly<Record<string, string>>): Promise<void> {
  const paths = clusterPaths(home, name)
  await writeState(paths, { name, id: 'abcd', port: 1, nodes: [], simulatedNodes: [], verbosity: 0 })
  await mkdir(paths.store, { recursive: true })
  const store = await openStore(name)
  for (const [key, value] of Object.entries(content)) await store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.from(value) }] })
  await store.close()
}

const openStore = (name: string, file = 'data.mdb') => openLmdbStore({ path: join(clusterPaths(home, name).store, file), clock: realClock, log: noLog })

async function contentOf(name: string, file?: string): Promise<{ readonly revision: number; readonly keys: Record<string, string> }> {
  const store = await openStore(name, file)
  const { kvs, revision } = await store.range('', '\0')
  await store.close()
  return { revision, keys: Object.fromEntries(kvs.map(({ key, value }) => [key, Buffer.from(value).toString()])) }
}

describe('skiff snapshot restore', () => {
  useHome()

  test('ETC-20 a stopped cluster is saved, and restored into itself with the old store kept', async () => {
    await makeCluster('a', { '/registry/x': '1', '/registry/y': '2' })
    const { bytes } = await snapshots.save('a', fileOf('a.db'), progress)
    assert.equal((await readFile(fileOf('a.db'))).length, bytes)
    const store = await openStore('a')
    await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/x', value: Buffer.from('later') }] })
    await store.close()
    const restored = await snapshots.restore(fileOf('a.db'), 'a', plain, progress)
    assert.deepEqual([restored.totalKey, restored.restoredRevision, restored.version], [2, 3, '3.6.0'])
    assert.deepEqual(await contentOf('a'), { revision: 3, keys: { '/registry/x': '1', '/registry/y': '2' } })
    assert.equal(restored.backup, join(clusterPaths(home, 'a').store, 'data.mdb.bak'))
    assert.deepEqual(await contentOf('a', 'data.mdb.bak'), { revision: 4, keys: { '/registry/x': 'later', '/registry/y': '2' } })
    assert.equal((await snapshots.restore(fileOf('a.db'), 'a', plain, progress)).backup, join(clusterPaths(home, 'a').store, 'data.mdb.bak-2'))
  })

  test('ETC-20 a restore raises the data format of the cluster, and one that is refused does not', async () => {
    await makeCluster('a', { '/registry/x': '1' })
    await snapshots.save('a', fileOf('a.db'), progress)
    await writeFile(fileOf('text'), 'kind: Pod')
    const formatOf = async () => (await readState(clusterPaths(home, 'a')))?.format
    await assert.rejects(snapshots.restore(fileOf('text'), 'a', { ...plain, skipHashCheck: true }, progress))
    assert.equal(await formatOf(), undefined)
    await snapshots.restore(fileOf('a.db'), 'a', plain, progress)
    assert.equal(await formatOf(), 2)
  })

  test('ETC-20 a snapshot is restored into a cluster that is not there yet', async () => {
    await makeCluster('a', { '/registry/x': '1' })
    await snapshots.save('a', fileOf('a.db'), progress)
    assert.equal((await snapshots.restore(fileOf('a.db'), 'b', plain, progress)).backup, undefined)
    assert.deepEqual((await contentOf('b')).keys, { '/registry/x': '1' })
  })

  test('ETC-20 --bump-revision raises the revision, and nothing before it can be read or watched', async () => {
    await makeCluster('a', { '/registry/x': '1' })
    await snapshots.save('a', fileOf('a.db'), progress)
    assert.equal((await snapshots.restore(fileOf('a.db'), 'a', { ...plain, bumpRevision: 1000 }, progress)).restoredRevision, 1002)
    const store = await openStore('a')
    assert.equal(store.latestRevision(), 1002)
    await assert.rejects(
      store.watch({ from: '/', to: '0', startRevision: 3 }, () => {}, new AbortController().signal),
      { code: 'compacted' },
    )
    await store.close()
    await snapshots.save('a', fileOf('bumped.db'), progress)
    assert.equal((await snapshots.restore(fileOf('bumped.db'), 'a', plain, progress)).restoredRevision, 1002)
  })
})

describe('files of skiff snapshot', () => {
  useHome()

  test('ETC-20 two snapshots are compared by the newest values of their keys', async () => {
    await makeCluster('a', { '/a': '1', '/b': '1', '/c': '1' })
    await makeCluster('b', { '/b': '2', '/c': '1', '/d': '1' })
    for (const name of ['a', 'b']) await snapshots.save(name, fileOf(`${name}.db`), progress)
    assert.deepEqual(await snapshots.diff(fileOf('a.db'), fileOf('b.db')), { added: ['/d'], removed: ['/a'], changed: ['/b'] })
  })

  const damages: readonly {
    readonly name: string
    readonly damage: (file: string) => Promise<void>
    readonly error: object
    readonly skipHashCheck?: boolean
  }[] = [
    { name: 'that does not exist', damage: (file) => rm(file), error: { exit: 'notFound', message: /does not exist$/ } },
    {
      name: 'that is no snapshot',
      damage: (file) => writeFile(file, 'kind: Pod\n'),
      error: { exit: 'usage', message: /is no snapshot of etcd, or a damaged one: neither/ },
    },
    {
      name: 'that is no snapshot, without a look at the hash',
      damage: (file) => writeFile(file, 'kind: Pod\n'),
      error: { exit: 'usage', message: /is no snapshot of etcd, or a damaged one: neither/ },
      skipHashCheck: true,
    },
    {
      name: 'with a changed byte',
      damage: (file) => change(file, 9000),
      error: { exit: 'usage', message: /: expected sha256 [0-9a-f]{64}, got [0-9a-f]{64}$/ },
    },
    {
      name: 'with a damaged page, without a look at the hash',
      damage: (file) => change(file, 3 * 4096),
      error: { exit: 'usage', message: /damaged one: page 3: it says to be page \d+$/ },
      skipHashCheck: true,
    },
    { name: 'that is cut off', damage: (file) => truncate(file, 8192), error: { exit: 'usage', message: /damaged one: the file is cut off/ } },
    {
      name: 'without its hash',
      damage: async (file) => truncate(file, (await stat(file)).size - 32),
      error: { exit: 'usage', message: /snapshot missing hash but --skip-hash-check=false$/ },
    },
    {
      name: 'with a newer layout',
      damage: (file) => newerLayout(file),
      error: { exit: 'unmetPrerequisite', message: /has the layout of etcd 3\.9\.0, and this version of Skiff reads layouts up to 3\.6$/ },
      skipHashCheck: true,
    },
  ]
  for (const { name, damage, error, skipHashCheck = false } of damages) {
    test(`ETC-20 a file ${name} is refused, and the store stays as it was`, async () => {
      await makeCluster('a', { '/registry/x': '1' })
      await snapshots.save('a', fileOf('a.db'), progress)
      const before = await readdir(clusterPaths(home, 'a').store)
      await damage(fileOf('a.db'))
      await assert.rejects(snapshots.restore(fileOf('a.db'), 'a', { bumpRevision: 0, skipHashCheck }, progress), error)
      assert.deepEqual(
        (await readdir(clusterPaths(home, 'a').store)).filter((file) => !file.endsWith('-holder')),
        before.filter((file) => !file.endsWith('-holder')),
      )
      assert.deepEqual((await contentOf('a')).keys, { '/registry/x': '1' })
    })
  }

  test('ETC-20 a cluster that runs is not restored', async () => {
    await makeCluster('a', { '/registry/x': '1' })
    await snapshots.save('a', fileOf('a.db'), progress)
    await rememberProcess(clusterPaths(home, 'a').server('server').pid, process.pid, realClock)
    await assert.rejects(snapshots.restore(fileOf('a.db'), 'a', plain, progress), { exit: 'conflict', message: 'cluster "a" is running' })
  })
})

describe('skiff snapshot save', () => {
  useHome()

  test('ETC-20 a save removes what killed saves left, writes through no link, and keeps the part of a save that runs', async () => {
    await makeCluster('a', { '/registry/x': '1' })
    const [victim, own, killed, running] = ['victim', `a.db.${process.pid}.part`, 'a.db.2147483647.part', `a.db.${process.ppid}.part`]
    for (const name of [victim, killed, running]) await writeFile(fileOf(name), 'before')
    await symlink(fileOf(victim), fileOf(own))
    const { bytes } = await snapshots.save('a', fileOf('a.db'), progress)
    assert.deepEqual(
      (await readdir(home)).filter((name) => name.endsWith('.part')),
      [running],
    )
    assert.equal(await readFile(fileOf(victim), 'utf8'), 'before')
    const { size, mode } = await stat(fileOf('a.db'))
    assert.deepEqual([size, mode & 0o777], [bytes, 0o600])
  })

  test('ETC-20 a save that fails leaves neither a file nor a part of it', async () => {
    await makeCluster('a', { '/registry/x': '1' })
    await rememberProcess(clusterPaths(home, 'a').server('server').pid, process.pid, realClock)
    await assert.rejects(snapshots.save('a', fileOf('a.db'), progress), { exit: 'internal', message: /gave no snapshot/ })
    assert.deepEqual(await readdir(home), ['clusters'])
  })

  test('ETC-20 a save into a folder that does not exist names the folder', async () => {
    await makeCluster('a', {})
    await assert.rejects(snapshots.save('a', join(home, 'none', 'a.db'), progress), {
      exit: 'notFound',
      message: `the folder ${join(home, 'none')} does not exist`,
    })
  })

  test('ETC-20 a cluster whose store cannot be read is not saved, and the error names the file', async () => {
    await makeCluster('a', {})
    await writeFile(join(clusterPaths(home, 'a').store, 'data.mdb'), 'text')
    await assert.rejects(snapshots.save('a', fileOf('a.db'), progress), {
      exit: 'internal',
      message: /^the store of cluster "a" cannot be opened: \S+data\.mdb is no store of Skiff/,
    })
  })

  test('ETC-20 a copy of the database without a trailer is taken with --skip-hash-check', async () => {
    await makeCluster('a', { '/registry/x': '1' })
    const { bytes } = await snapshots.save('a', fileOf('a.db'), progress)
    await copyFile(fileOf('a.db'), fileOf('db'))
    await truncate(fileOf('db'), bytes - 32)
    assert.equal((await snapshots.status(fileOf('db'))).totalKey, 1)
    assert.equal((await snapshots.restore(fileOf('db'), 'b', { ...plain, skipHashCheck: true }, progress)).totalKey, 1)
  })
})

describe('skiff snapshot, to and from places that hold no file', () => {
  useHome()

  for (const [name, makeFile, error] of [
    ['in no directory', async () => 'nowhere/a.db', { exit: 'notFound', message: /^the folder \S+nowhere does not exist$/ }],
    ['on a directory', async (file: string) => mkdir(file).then(() => 'a.db'), { exit: 'usage', message: /a\.db is a directory, a file is needed$/ }],
  ] as const) {
    test(`ETC-20 a save ${name} is refused in one line, with the path`, async () => {
      await makeCluster('a', { '/registry/x': '1' })
      const file = fileOf(await makeFile(fileOf('a.db')))
      await assert.rejects(snapshots.save('a', file, progress), { ...error, hint: 'name another file' })
    })
  }

  test('ETC-20 a restore from a directory is refused', async () => {
    await assert.rejects(snapshots.restore(home, 'a', plain, progress), { exit: 'usage', message: `${home} is no file` })
  })
})

async function change(file: string, at: number): Promise<void> {
  const bytes = await readFile(file)
  bytes[at] = (bytes[at] as number) ^ 1
  await writeFile(file, bytes)
}

async function newerLayout(file: string): Promise<void> {
  const bytes = await readFile(file)
  bytes.write('3.9.0', bytes.lastIndexOf('3.6.0'))
  await writeFile(file, bytes)
}
