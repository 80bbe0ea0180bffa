/**
 * The disk below a cluster's directory runs full: the server runs without its log, `start` says what is wrong, and `delete` works. A file system in memory,
 * a simulated cluster, the built program.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, LocalCluster, obstacleToCluster } from '../e2e/support/localCluster.ts'

const name = 'full-disk'
const skip = obstacleToCluster(false) || (process.platform === 'linux' && process.getuid?.() === 0 ? false : 'needs root to mount a file system')
const options = { skip, timeout: 120_000 }
const mebibyte = 2 ** 20
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

/** Writes until there is no byte left. */
function fill(): void {
  const descriptor = fs.openSync(filler(), 'a')
  try {
    for (let size = mebibyte; size >= 1; ) {
      try {
        fs.writeSync(descriptor, Buffer.alloc(size))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        size = Math.floor(size / 2)
      }
    }
  } finally {
    fs.closeSync(descriptor)
  }
}

const dropped = async () => Number(/^skiff_log_lines_dropped_total (\d+)$/m.exec(await cluster.must(['get', '--raw', '/metrics']))?.[1] ?? 0)

test('a server whose log cannot be written drops lines and counts them, runs on, and logs again when there is room', options, async () => {
  const pid = serverPid()
  fill()
  await eventually(
    'a dropped line',
    30_000,
    async () => {
      fill()
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

test('start on a full disk says so, and delete works there', options, async () => {
  assert.equal((await cluster.skiff(['stop', name])).code, 0)
  fill()
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
