/** ETC-11, ETC-13, ETC-20: snapshots, hashes and defragmentation of the embedded store, with Debian's etcd 3.4 as the judge. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { seededRandom } from '#base/random'
import type { LocalStore, Op } from '#store/store'
import { type EtcdServer, obstacleToEtcd, startEtcd } from '../../support/etcdServer.ts'
import { importedStore } from '../../support/importedStore.ts'
import { type ServedStore, serveStore } from '../../support/servedStore.ts'

const execute = promisify(execFile)
const ctl = async (...args: string[]) => (await execute('etcdctl', args, { env: { ...process.env, ETCDCTL_API: '3' }, timeout: 60_000 })).stdout.trimEnd()

interface Hash {
  readonly hash: number
  readonly compact_revision: number
}

async function hashOf(endpoint: string, revision = 0): Promise<Hash> {
  const [{ HashKV }] = JSON.parse(await ctl('--endpoints', endpoint, 'endpoint', 'hashkv', '--rev', String(revision), '-w', 'json'))
  return { hash: HashKV.hash, compact_revision: HashKV.compact_revision }
}

/** Writes that leave every kind of history: replaced, deleted and made again, several of one revision, with leases. */
async function fill(store: Pick<LocalStore, 'transact' | 'grantLease'>, seed: number, writes: number): Promise<void> {
  const random = seededRandom(seed)
  const lease = await store.grantLease(3600)
  const key = () => `/registry/things/${random.int(40)}`
  for (let at = 0; at < writes; at++) {
    const keys = [...new Set([key(), key(), key()])].slice(0, 1 + random.int(3))
    const success = keys.map((one): Op => {
      if (random.int(4) === 0) return { type: 'delete', from: one }
      return { type: 'put', key: one, value: Buffer.alloc(random.int(3000), at), ...(random.int(5) === 0 ? { lease } : {}) }
    })
    await store.transact({ compare: [], success })
  }
}

const skip = obstacleToEtcd()
let folder = ''
let served: ServedStore
before(async () => {
  if (skip) return
  folder = await mkdtemp(join(tmpdir(), 'skiff-snapshot-'))
  served = await serveStore()
})
after(async () => {
  if (skip) return
  await served.close()
  await rm(folder, { recursive: true, force: true })
})

async function etcdFrom(snapshot: string, name: string): Promise<EtcdServer> {
  const data = join(folder, name)
  await ctl(
    'snapshot',
    'restore',
    snapshot,
    '--data-dir',
    data,
    '--name',
    'm0',
    '--initial-cluster',
    'm0=http://127.0.0.1:1',
    '--initial-advertise-peer-urls',
    'http://127.0.0.1:1',
  )
  return startEtcd(undefined, data)
}

test('ETC-20 ETC-11 EXP-12 etcd restores a snapshot of the store, and both have the same hash at each revision', { skip, timeout: 120_000 }, async () => {
  const { store, endpoint } = served
  await fill(store, 1, 300)
  await store.compact(150)
  await fill(store, 2, 100)
  const file = join(folder, 'skiff.db')
  await ctl('--endpoints', endpoint, 'snapshot', 'save', file)
  const etcd = await etcdFrom(file, 'restored')
  try {
    const url = etcd.url.replace('http://', '')
    const newest = store.latestRevision()
    for (const revision of [0, newest, newest - 1, newest - 50, 200, 151])
      assert.deepEqual(await hashOf(endpoint, revision), await hashOf(url, revision), `revision ${revision}`)
    assert.equal(
      await ctl('--endpoints', url, 'get', '', '--prefix', '-w', 'fields'),
      await ctl('--endpoints', endpoint, 'get', '', '--prefix', '-w', 'fields').then((all) => withHeadOf(all, url)),
    )
    // Compacted at the same later revision, they still have the same hash.
    for (const one of [endpoint, url]) await ctl('--endpoints', one, 'compact', String(newest - 20), '--physical')
    for (const revision of [0, newest - 10]) assert.deepEqual(await hashOf(endpoint, revision), await hashOf(url, revision))
    await assert.rejects(hashOf(endpoint, newest - 30), /required revision has been compacted/)
    await assert.rejects(hashOf(endpoint, newest + 30), /required revision is a future revision/)
  } finally {
    await etcd.stop()
  }
})

test('ETC-20 EXP-12 a snapshot of etcd, with leases of 63 bits, passes through the store without a change', { skip, timeout: 120_000 }, async () => {
  const etcd = await startEtcd()
  const url = etcd.url.replace('http://', '')
  const [first, second] = [join(folder, 'etcd.db'), join(folder, 'again.db')]
  try {
    const granted = /lease ([0-9a-f]{16})/.exec(await ctl('--endpoints', url, 'lease', 'grant', '3600'))?.[1]
    assert.ok(granted && BigInt(`0x${granted}`) > 2n ** 53n)
    for (let at = 0; at < 30; at++) await ctl('--endpoints', url, 'put', `key-${at % 7}`, `value ${at}`, ...(at % 3 === 0 ? ['--lease', granted] : []))
    await ctl('--endpoints', url, 'del', 'key-1')
    await ctl('--endpoints', url, 'compact', '20', '--physical')
    await ctl('--endpoints', url, 'snapshot', 'save', first)
    const imported = await importedStore(first)
    try {
      assert.deepEqual(await hashOf(imported.endpoint), await hashOf(url))
      assert.deepEqual(imported.store.leaseIds(), [BigInt(`0x${granted}`)])
      await ctl('--endpoints', imported.endpoint, 'snapshot', 'save', second)
      await ctl('--endpoints', imported.endpoint, 'lease', 'revoke', granted)
      assert.doesNotMatch(await ctl('--endpoints', imported.endpoint, 'get', '', '--prefix', '--keys-only'), /key-[36]/)
    } finally {
      await imported.close()
    }
    const again = await etcdFrom(second, 'again')
    assert.deepEqual(await hashOf(again.url.replace('http://', '')), await hashOf(url))
    await again.stop()
  } finally {
    await etcd.stop()
  }
})

test('ETC-20 the snapshot of a store that is written is the store at one revision', { skip, timeout: 60_000 }, async () => {
  const { store, endpoint } = served
  let isSaved = false
  const writing = (async () => {
    for (let at = 0; !isSaved; at++) {
      const value = Buffer.from(String(at))
      await store.transact({ compare: [], success: ['one', 'two'].map((key) => ({ type: 'put' as const, key, value })) })
      if (at % 50 === 49) await Promise.race([store.compact(store.latestRevision()), new Promise((resolve) => setImmediate(resolve))])
    }
  })()
  const file = join(folder, 'written.db')
  await ctl('--endpoints', endpoint, 'snapshot', 'save', file)
  isSaved = true
  await writing
  const imported = await importedStore(file)
  const [one, two] = await Promise.all(['one', 'two'].map((key) => imported.store.range(key)))
  await imported.close()
  assert.ok(one?.kvs[0])
  assert.deepEqual({ ...one.kvs[0], key: 'two' }, two?.kvs[0])
})

test('ETC-13 after 20000 keys are deleted and compacted, defrag makes the file small, and the keys that are left stay', {
  skip,
  timeout: 120_000,
}, async () => {
  const small = await serveStore()
  const { store, endpoint, folder: data } = small
  try {
    for (let at = 0; at < 20_000; at += 100) {
      const success = Array.from({ length: 100 }, (_, index): Op => ({ type: 'put', key: `k${at + index}`, value: Buffer.alloc(500, index) }))
      await store.transact({ compare: [], success })
    }
    await store.transact({ compare: [], success: [{ type: 'delete', from: 'k1', to: 'l' }] })
    await store.compact(store.latestRevision())
    const sizeOf = async () => JSON.parse(await ctl('--endpoints', endpoint, 'endpoint', 'status', '-w', 'json'))[0].Status.dbSize as number
    const before = await sizeOf()
    const reading = store.range('k0')
    await ctl('--endpoints', endpoint, 'defrag')
    assert.equal((await reading).count, 1)
    assert.ok((await sizeOf()) < before / 3, `${before} → ${await sizeOf()}`)
    assert.ok((await stat(join(data, 'data.mdb'))).size < before / 3)
    assert.equal((await store.range('k0')).kvs[0]?.value.length, 500)
    await store.transact({ compare: [], success: [{ type: 'put', key: 'later', value: Buffer.from('2') }] })
    assert.deepEqual(await hashOf(endpoint), await hashAfterRestart(small))
  } finally {
    await small.close()
  }
})

async function hashAfterRestart(running: ServedStore): Promise<Hash> {
  const file = join(folder, 'defragmented.db')
  await ctl('--endpoints', running.endpoint, 'snapshot', 'save', file)
  const imported = await importedStore(file)
  try {
    return await hashOf(imported.endpoint)
  } finally {
    await imported.close()
  }
}

/** The header of an answer names the member. */
async function withHeadOf(fields: string, url: string): Promise<string> {
  const head = (await ctl('--endpoints', url, 'get', 'none', '-w', 'fields')).split('\n').filter((line) => /ClusterID|MemberID|RaftTerm/.test(line))
  return fields
    .split('\n')
    .map((line) => head.find((one) => one.split(':')[0] === line.split(':')[0]) ?? line)
    .join('\n')
}
