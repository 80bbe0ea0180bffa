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
    if (
      await etcdctl(endpoint, 'endpoint', 'health').then(
        () => true,
        () => false,
      )
    )
      return endpoint
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
    const database = inWork('database')
    await copyFile(saved, database)
    await truncate(database, (await stat(saved)).size - trailerBytes)
    assert.match(await run(program('bbolt'), 'check', database), /OK/)
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

  await passes('a raised revision is the same for Skiff and etcd', async () => {
    await skiff('snapshot', 'restore', saved, 'raised', '--bump-revision', '1000', '--mark-compacted', '-q')
    const { revision } = await statusesAgree(saved)
    const ours = await serveSkiff('raised')
    const [{ Status }] = JSON.parse(await etcdctl(ours, 'endpoint', 'status', '-w', 'json'))
    assert.equal(Status.header.revision, revision + 1000)
    await assert.rejects(etcdctl(ours, 'get', '/registry/', '--prefix', '--rev', String(revision)), /required revision has been compacted/)
  })
} finally {
  for (const child of running) child.kill('SIGKILL')
}
process.exit(0)
