/**
 * The embedded store against etcd 3.6: what Skiff saves, etcdutl checks and etcd restores; what etcd saves, Skiff restores and serves. At each step the hash of
 * the keys is the same on both sides. `run` builds etcd's programs into WORK/bin.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, stat, truncate } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const { SKIFF = '', SKIFF_HOME = '', CLUSTER = '', WORK = '' } = process.env
const trailerBytes = 32
const running = new Set<ChildProcess>()

async function run(program: string, ...args: string[]): Promise<string> {
  return (await execute(program, args, { timeout: 120_000, maxBuffer: 64 << 20 })).stdout
}
const program = (name: string) => path.join(WORK, 'bin', name)
const skiff = (...args: string[]) => run(process.execPath, SKIFF, ...args)
const etcdctl = (endpoint: string, ...args: string[]) => run(program('etcdctl'), '--endpoints', endpoint, ...args)
const inWork = (name: string) => path.join(WORK, name)

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** Starts a server of etcd's API and waits until it answers. @returns HOST:PORT */
async function serve(command: string, args: readonly string[]): Promise<string> {
  const endpoint = `127.0.0.1:${await freePort()}`
  const urls = [`--listen-client-urls=http://${endpoint}`, `--advertise-client-urls=http://${endpoint}`]
  const child = spawn(command, [...args, ...urls], { stdio: 'ignore' })
  running.add(child)
  for (let tries = 0; tries < 100; tries++) {
    const health = await etcdctl(endpoint, 'endpoint', 'health').then(
      () => 'healthy',
      (error: { stderr: string }) => error.stderr,
    )
    // One that needs users answers as well.
    if (health === 'healthy' || health.includes('user name is empty')) return endpoint
    await sleep(200)
  }
  throw new Error(`${command} did not answer at ${endpoint}`)
}

const serveSkiff = (cluster: string) => serve(process.execPath, [SKIFF, 'etcd', 'serve', `--data-dir=${path.join(SKIFF_HOME, 'clusters', cluster, 'store')}`])

async function serveEtcd(name: string, snapshot?: string): Promise<string> {
  const data = inWork(`${name}.etcd`)
  if (snapshot !== undefined) await run(program('etcdutl'), 'snapshot', 'restore', snapshot, '--data-dir', data)
  return serve(program('server'), [`--data-dir=${data}`, `--listen-peer-urls=http://127.0.0.1:${await freePort()}`])
}

async function hashOf(endpoint: string, revision = 0): Promise<object> {
  const [{ HashKV }] = JSON.parse(await etcdctl(endpoint, 'endpoint', 'hashkv', '--rev', String(revision), '-w', 'json'))
  const { hash, compact_revision, hash_revision } = HashKV
  return { hash, compact_revision, hash_revision }
}

async function statusesAgree(file: string): Promise<{ readonly revision: number }> {
  const found = JSON.parse(await skiff('snapshot', 'status', file, '-o', 'json'))
  assert.deepEqual(found, JSON.parse(await run(program('etcdutl'), 'snapshot', 'status', file, '-w', 'json')))
  return found
}

async function addUsers(endpoint: string): Promise<void> {
  const commands = [
    ...['user add root:secret', 'user add jane:pw', 'user add cert --no-password', 'role add reader', 'put shop/a 1', 'put other 1'],
    ...['role grant-permission reader read shop/ --prefix', 'role grant-permission reader readwrite cart', 'role grant-permission reader write x --from-key'],
    ...['user grant-role jane reader', 'auth enable'],
  ]
  for (const command of commands) await etcdctl(endpoint, ...command.split(' '))
}

function usersOf(endpoint: string): Promise<string[]> {
  const commands = ['user list', 'role list', 'user get jane --detail', 'role get reader', 'role get root', 'auth status', 'user get cert']
  return Promise.all(commands.map((command) => etcdctl(endpoint, '--user', 'root:secret', ...command.split(' '))))
}

const refusedCommands: readonly (readonly [user: string, command: string])[] = [
  ...['get shop/a', 'put cart 1', 'auth status', 'user list', 'endpoint hashkv', 'defrag', 'snapshot save refused.db'].map((command) => ['', command] as const),
  ...['get other', 'put shop/a 2', 'del shop/ --prefix', 'get a --from-key', 'role list', 'user get cert', 'auth disable', 'user add x:y', 'defrag'].map(
    (command) => ['jane:pw', command] as const,
  ),
  ['jane:wrong', 'get shop/a'],
  ['cert:x', 'get shop/a'],
]

/** The reason why a command of a user is refused. */
async function refusalOf(endpoint: string, user: string, command: string): Promise<string> {
  const text = await etcdctl(endpoint, ...(user ? ['--user', user] : []), ...command.split(' ')).catch((error: { stderr: string }) => error.stderr)
  return (
    text
      .trim()
      .split(/\n|desc = /)
      .at(-1)
      ?.replaceAll(endpoint, 'ENDPOINT')
      .replace(/took \S+s\./, '') ?? ''
  )
}

/** The database in a snapshot's file. */
async function databaseOf(file: string): Promise<string> {
  const database = `${file}.database`
  await copyFile(file, database)
  await truncate(database, (await stat(file)).size - trailerBytes)
  return database
}

/** The entries of a bucket, with their values. */
async function bucketOf(database: string, bucket: string): Promise<string> {
  const keys = (await run(program('bbolt'), 'keys', database, bucket)).trim().split('\n')
  const values = await Promise.all(keys.map((key) => run(program('bbolt'), 'get', '--format', 'hex', database, bucket, key)))
  return keys.map((key, at) => `${key} ${values[at]}`).join('')
}

async function passes(name: string, check: () => Promise<void>): Promise<void> {
  await check()
  console.log(`ok ${name}`)
}

try {
  const saved = inWork('cluster.db')
  await passes('a running cluster is saved, and etcdutl and bbolt find no fault', async () => {
    await skiff('snapshot', 'save', saved, '--cluster', CLUSTER, '-q')
    const { revision } = await statusesAgree(saved)
    assert.ok(revision > 100)
    assert.match(await run(program('bbolt'), 'check', await databaseOf(saved)), /OK/)
  })

  await passes('etcd and Skiff restore it with the same hash', async () => {
    const etcd = await serveEtcd('first', saved)
    await skiff('snapshot', 'restore', saved, 'restored', '-q')
    const ours = await serveSkiff('restored')
    assert.deepEqual(await hashOf(ours), await hashOf(etcd))
    assert.equal(await etcdctl(ours, 'get', '/registry/', '--prefix', '--keys-only'), await etcdctl(etcd, 'get', '/registry/', '--prefix', '--keys-only'))
  })

  await passes('a snapshot of etcd passes through Skiff to etcd without a change', async () => {
    const etcd = await serveEtcd('second')
    const lease = /lease ([0-9a-f]+)/.exec(await etcdctl(etcd, 'lease', 'grant', '3600'))?.[1] ?? ''
    for (let at = 0; at < 60; at++) await etcdctl(etcd, 'put', `key-${at % 11}`, `value ${at}`, ...(at % 4 === 0 ? ['--lease', lease] : []))
    for (const key of ['key-3', 'key-5']) await etcdctl(etcd, 'del', key)
    await etcdctl(etcd, 'compact', '40', '--physical')
    const [before, after] = [inWork('etcd.db'), inWork('skiff.db')]
    await etcdctl(etcd, 'snapshot', 'save', before)
    await statusesAgree(before)
    await skiff('snapshot', 'restore', before, 'through', '-q')
    const ours = await serveSkiff('through')
    await etcdctl(ours, 'snapshot', 'save', after)
    await statusesAgree(after)
    const again = await serveEtcd('third', after)
    for (const revision of [0, 41, 50]) {
      assert.deepEqual(await hashOf(ours, revision), await hashOf(etcd, revision))
      assert.deepEqual(await hashOf(again, revision), await hashOf(etcd, revision))
    }
    assert.match(await etcdctl(ours, 'endpoint', 'status', '-w', 'json'), /"storageVersion":"3\.6\.0"/)
    await etcdctl(ours, 'defrag')
    assert.deepEqual(await hashOf(ours), await hashOf(etcd))
    await etcdctl(ours, 'lease', 'revoke', lease)
  })

  await passes('users and roles of Skiff are those of etcd, and pass through snapshots of both', async () => {
    const etcd = await serveEtcd('fourth')
    const ours = await serveSkiff('users')
    for (const endpoint of [etcd, ours]) await addUsers(endpoint)
    const wanted = await usersOf(etcd)
    assert.deepEqual(await usersOf(ours), wanted)
    for (const [user, command] of refusedCommands) {
      const [theirs, own] = await Promise.all([etcd, ours].map((endpoint) => refusalOf(endpoint, user, command)))
      assert.match(theirs ?? '', /permission denied|user name is empty|authentication failed/, `${user} ${command}`)
      assert.equal(own, theirs, `${user} ${command}`)
    }
    assert.equal(await etcdctl(ours, '--user', 'jane:pw', 'get', 'shop/a', '--print-value-only'), '1\n')
    const [fromEtcd, fromSkiff] = [inWork('users-etcd.db'), inWork('users-skiff.db')]
    await etcdctl(etcd, '--user', 'root:secret', 'snapshot', 'save', fromEtcd)
    await etcdctl(ours, '--user', 'root:secret', 'snapshot', 'save', fromSkiff)
    for (const file of [fromEtcd, fromSkiff]) await statusesAgree(file)
    assert.deepEqual(await usersOf(await serveEtcd('fifth', fromSkiff)), wanted)
    await skiff('snapshot', 'restore', fromEtcd, 'users-of-etcd', '-q')
    const restored = await serveSkiff('users-of-etcd')
    assert.deepEqual(await usersOf(restored), wanted)
    // What etcd saved comes back from Skiff with the same bytes. Two hashes of one password differ, so that only the roles of the first two are equal.
    const [first, second] = [await databaseOf(fromEtcd), inWork('again.db')]
    await etcdctl(restored, '--user', 'root:secret', 'snapshot', 'save', second)
    for (const bucket of ['authUsers', 'authRoles']) assert.equal(await bucketOf(await databaseOf(second), bucket), await bucketOf(first, bucket))
    assert.equal(await bucketOf(await databaseOf(fromSkiff), 'authRoles'), await bucketOf(first, 'authRoles'))
    for (const endpoint of [ours, restored]) await etcdctl(endpoint, '--user', 'root:secret', 'auth', 'disable')
    assert.equal(await etcdctl(ours, 'get', 'shop/a', '--print-value-only'), '1\n')
  })

  await passes('a raised revision is the same for Skiff and etcd', async () => {
    await skiff('snapshot', 'restore', saved, 'raised', '--bump-revision', '1000', '--mark-compacted', '-q')
    const { revision } = await statusesAgree(saved)
    const ours = await serveSkiff('raised')
    const [{ Status }] = JSON.parse(await etcdctl(ours, 'endpoint', 'status', '-w', 'json'))
    assert.equal(Status.header.revision, revision + 1000)
    await assert.rejects(etcdctl(ours, 'get', '/registry/', '--prefix', '--rev', String(revision)), /required revision has been compacted/)
  })
  await passes('HA-02 a cluster keeps its objects in an etcd 3.6, and finds them after a restart', async () => {
    const etcd = await serveEtcd('sixth')
    await skiff('up', 'over-etcd', '--runtime', 'simulated', '--etcd-servers', `http://${etcd}`, '-q')
    try {
      const value = await etcdctl(etcd, 'get', '/registry/namespaces/default', '--print-value-only')
      assert.ok(value.startsWith('k8s\0'))
      const namespaces = () => etcdctl(etcd, 'get', '/registry/namespaces/', '--prefix', '-w', 'fields')
      const before = await namespaces()
      assert.match(before, /kube-system/)
      await skiff('stop', 'over-etcd', '-q')
      await skiff('start', 'over-etcd', '-q')
      const withoutHeader = (text: string) => text.replace(/^"(ClusterID|MemberID|Revision|RaftTerm)".*$/gm, '')
      assert.equal(withoutHeader(await namespaces()), withoutHeader(before))
    } finally {
      await skiff('delete', 'over-etcd', '-q')
    }
  })
} finally {
  for (const child of running) child.kill('SIGKILL')
}
process.exit(0)
