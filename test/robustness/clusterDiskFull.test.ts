/**
 * The disk below a cluster's directory runs full: the server runs without its log, and starts again after a crash; `start` says what is wrong, and `delete` works. A file system in memory,
 * a simulated cluster, the built program.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, LocalCluster, obstacleToCluster } from '../e2e/support/localCluster.ts'
import { fillDisk } from '../support/fillDisk.ts'

const name = 'full-disk'
const skip = obstacleToCluster(false) || (process.platform === 'linux' && process.getuid?.() === 0 ? false : 'needs root to mount a file system')
const options = { skip, timeout: 120_000 }
const temporary = process.env.TMPDIR
let disk = ''
let cluster: LocalCluster

before(async () => {
  if (skip) return
  disk = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=0700', 'tmpfs', disk])
  process.env.TMPDIR = disk
  cluster = await LocalCluster.start(name, ['--runtime', 'simulated', '-v', '6'])
})

after(async () => {
  if (skip) return
  if (temporary === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = temporary
  await cluster?.delete()
  execFileSync('umount', ['-l', disk])
  fs.rmdirSync(disk)
})

const filler = () => path.join(disk, 'filler')
const inCluster = (file: string) => path.join(cluster.dir, 'home', 'clusters', name, file)
const serverPid = () => (JSON.parse(fs.readFileSync(inCluster('server.pid'), 'utf8')) as { pid: number }).pid
const locks = () => fs.readdirSync(path.join(cluster.dir, 'home', 'clusters')).filter((entry) => entry.includes('.lock'))

const dropped = async () => Number(/^skiff_log_lines_dropped_total (\d+)$/m.exec(await cluster.must(['get', '--raw', '/metrics']))?.[1] ?? 0)

test('a server whose log cannot be written drops lines and counts them, runs on, and logs again when there is room', options, async () => {
  const pid = serverPid()
  fillDisk(filler())
  await eventually(
    'a dropped line',
    30_000,
    async () => {
      fillDisk(filler())
      await cluster.kubectl(['create', 'configmap', `c-${Date.now()}`, `--from-literal=a=${'x'.repeat(10_000)}`])
      return dropped()
    },
    (count) => count > 0,
  )
  assert.equal(serverPid(), pid)
  process.kill(pid, 0)
  fs.rmSync(filler())
  await eventually(
    'the log',
    60_000,
    async () => {
      await cluster.kubectl(['create', 'namespace', `n-${Date.now()}`])
      return fs.readFileSync(inCluster('server.log'), 'utf8')
    },
    (text) => /^\d+ lines before this one could not be written$/m.test(text),
  )
})

test('a server that is killed on a full disk starts again and serves reads, and status names the disk', options, async () => {
  await cluster.must(['create', 'configmap', 'kept', '--from-literal=a=b'])
  fillDisk(filler())
  const killed = serverPid()
  process.kill(killed, 'SIGKILL')
  await eventually(
    'a read from the next server',
    30_000,
    async () => {
      fillDisk(filler())
      return cluster.kubectl(['get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}'])
    },
    ({ stdout }) => stdout === 'b' && serverPid() !== killed,
  )
  const status = await cluster.skiff(['status', name])
  assert.match(status.stdout, /^The disk of \S+ is full: 0\.0 MiB are free/m)
  fs.rmSync(filler())
})

test('start says within seconds that the disk is full, when the supervisor cannot start the server there', options, async () => {
  const { pid: supervisor } = JSON.parse(fs.readFileSync(inCluster('supervisor.pid'), 'utf8')) as { pid: number }
  process.kill(supervisor, 'SIGSTOP')
  try {
    process.kill(serverPid(), 'SIGKILL')
    fillDisk(filler())
    // The command locks the cluster by a file.
    fs.truncateSync(filler(), fs.statSync(filler()).size - 40_960)
    const started = await cluster.skiff(['start', name])
    assert.match(started.stderr, /^error: the disk of \S+ is full: the server cannot start$/m)
    assert.equal(started.code, 6)
  } finally {
    fs.rmSync(filler())
    process.kill(supervisor, 'SIGCONT')
  }
  assert.equal((await cluster.skiff(['start', name])).code, 0)
})

test('start on a full disk says so, and delete works there', options, async () => {
  assert.equal((await cluster.skiff(['stop', name])).code, 0)
  fillDisk(filler())
  const started = await cluster.skiff(['start', name])
  assert.match(started.stderr, /^error: the disk is full: \S+ cannot be written$/m)
  assert.doesNotMatch(started.stderr, /^ {4}at /m)
  assert.equal(started.code, 6)
  assert.deepEqual(locks(), [])
  const removed = await cluster.skiff(['delete', name])
  assert.equal(removed.code, 0, removed.stderr)
  assert.ok(!fs.existsSync(inCluster('')))
  fs.rmSync(filler())
})
