/** ETC-20: scheduled backups under virtual time, with directories and with a bucket that checks signatures. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { realClock } from '#testing/realClock'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { type ClusterPaths, type ClusterState, clusterPaths, writeState } from '../localCluster/clusterState.ts'
import type { BackupPlan } from './backupPlan.ts'
import { readBackups } from './backupRecord.ts'
import { scheduledBackups } from './scheduledBackups.ts'
import { serveBucket } from './testBucket.ts'

interface World {
  readonly paths: ClusterPaths
  readonly directory: string
  readonly clock: VirtualClock
  readonly failures: string[]
  readonly metrics: ReadonlyMap<string, number>
  /** Highest number of saves at once. */
  readonly mostAtOnce: () => number
  plan(change: Partial<BackupPlan>): Promise<void>
  /** Advances the clock to that time of the day and further until `done`. */
  until(time: string, done: () => boolean | Promise<boolean>): Promise<void>
  /** A server of the cluster, until the test ends. */
  start(): void
  stopAll(): Promise<void>
}

const start = '2026-11-29T05:00:00Z'
const six = 'lab-12ab-20261129T060000Z.db'
const sevenTo = (hour: number) => Array.from({ length: hour - 6 }, (_, i) => `lab-12ab-20261129T${String(i + 7).padStart(2, '0')}0000Z.db`)

/** As long as a snapshot may be, with the SHA-256 at its end. */
async function saveSnapshot(file: string, content: string): Promise<void> {
  const database = Buffer.alloc(1024, content)
  await writeFile(`${file}.part`, Buffer.concat([database, createHash('sha256').update(database).digest()]), { mode: 0o600 })
  await rename(`${file}.part`, file)
}

async function withBackups(run: (world: World) => Promise<void>, atStart: Partial<BackupPlan> = {}): Promise<void> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'skiff-backups-'))
  const [paths, directory] = [clusterPaths(home, 'lab'), path.join(home, 'backups')]
  await mkdir(directory)
  const clock = new VirtualClock(start)
  const metrics = createRecordedMetrics()
  const failures: string[] = []
  const plan: BackupPlan = { schedule: '0 * * * *', place: directory, keep: 3, sinceMs: Date.parse(start), ...atStart }
  const state: ClusterState = { name: 'lab', id: '12ab', port: 1, nodes: [], simulatedNodes: [], verbosity: 0, backup: plan }
  await writeState(paths, state)
  let [saves, running, most] = [0, 0, 0]
  const save = async (_state: ClusterState, file: string) => {
    most = Math.max(most, ++running)
    await saveSnapshot(file, `snapshot ${++saves}`).finally(() => running--)
  }
  const stops: (() => Promise<void>)[] = []
  const world: World = {
    paths,
    directory,
    clock,
    failures,
    metrics: metrics.values,
    mostAtOnce: () => most,
    plan: (change) => writeState(paths, { ...state, backup: { ...plan, ...change } }),
    async until(time, done) {
      const deadlineMs = realClock.monotonicMs() + 20_000
      const wantedMs = Date.parse(`2026-11-29T${time}Z`)
      while (clock.now() < wantedMs || !(await done())) {
        assert.ok(realClock.monotonicMs() < deadlineMs, 'nothing happens')
        await clock.advance(Math.max(10_000, Math.min(600_000, wantedMs - clock.now())))
        await realClock.sleep(20)
      }
    },
    start() {
      const stop = new AbortController()
      const ended = scheduledBackups({ paths, clock, log: noLog, metrics, save, onFailure: (reason) => failures.push(reason) }).run(stop.signal)
      const end = async () => {
        stop.abort()
        await ended
      }
      stops.push(end)
    },
    async stopAll() {
      for (const end of stops.splice(0)) await end()
    },
  }
  try {
    world.start()
    await run(world)
  } finally {
    await world.stopAll()
    await rm(home, { recursive: true })
  }
}

/** All but the mark of the directory. */
const there = async (directory: string) => (await readdir(directory)).filter((name) => name !== '.skiff-backups').sort()

test('ETC-20 a backup is made at each time of the schedule for its owner alone, and the newest three are kept', () =>
  withBackups(async ({ directory, until, metrics, paths }) => {
    await until('06:00:10', async () => (await there(directory)).includes(six))
    assert.deepEqual(await there(directory), [six])
    assert.equal((await stat(path.join(directory, six))).mode & 0o777, 0o600)
    for (const hour of [7, 8, 9, 10])
      await until(`${String(hour).padStart(2, '0')}:00:10`, async () => (await there(directory)).includes(sevenTo(hour).at(-1) ?? ''))
    await until('10:01:00', () => metrics.get('skiff_backups_total{result="success"}') === 5)
    assert.deepEqual(await there(directory), sevenTo(10).slice(-3))
    assert.equal((await readBackups(paths)).files.length, 3)
  }))

test('ETC-20 an old backup whose file was replaced stays, whether by another content or by a link', () =>
  withBackups(async ({ directory, until, metrics, paths }) => {
    for (const made of [1, 2]) await until(`0${made + 5}:00:10`, () => metrics.get('skiff_backups_total{result="success"}') === made)
    await saveSnapshot(path.join(directory, six), 'of another program')
    const [seven = ''] = sevenTo(7)
    await rename(path.join(directory, seven), path.join(directory, 'moved'))
    await symlink(path.join(directory, 'moved'), path.join(directory, seven))
    for (const hour of ['08', '09', '10', '11'])
      await until(`${hour}:00:10`, async () => (await readBackups(paths)).files.at(-1)?.name.includes(`T${hour}`) === true)
    await until('11:01:00', () => metrics.get('skiff_backups_total{result="success"}') === 6)
    assert.deepEqual(await there(directory), [six, ...sevenTo(11).filter((name) => !name.includes('T08')), 'moved'].sort())
  }))

test('ETC-20 of the times that were missed while no server ran, the newest one is made up, once', () =>
  withBackups(async ({ directory, clock, until, stopAll, start }) => {
    await stopAll()
    await clock.advance(5.5 * 3_600_000)
    start()
    await until('10:31:00', async () => (await there(directory)).length > 0)
    await until('10:50:00', () => true)
    assert.deepEqual(await there(directory), sevenTo(10).slice(-1))
  }))

test('ETC-20 two servers make one backup for one time, and never two at once', () =>
  withBackups(async ({ directory, until, start, metrics, mostAtOnce }) => {
    start()
    for (const hour of ['06', '07', '08']) await until(`${hour}:05:00`, async () => (await there(directory)).some((name) => name.includes(`T${hour}`)))
    await until('08:10:00', () => (metrics.get('skiff_backups_total{result="success"}') ?? 0) >= 3)
    await until('08:20:00', () => true)
    assert.equal(metrics.get('skiff_backups_total{result="success"}'), 3)
    assert.equal(mostAtOnce(), 1)
  }))

test('ETC-20 a backup whose directory is gone fails with the reason, is recorded, and is made when the directory is there again', () =>
  withBackups(async ({ directory, until, failures, metrics, paths }) => {
    await rm(directory, { recursive: true })
    await until('06:00:10', () => failures.length === 1)
    await until('06:05:00', async () => (await readBackups(paths)).failure !== undefined)
    assert.equal(failures.length, 1)
    assert.match(failures[0] ?? '', /no such file or directory/)
    assert.equal((await readBackups(paths)).failure?.reason, failures[0])
    assert.equal(metrics.get('skiff_backups_total{result="failure"}'), 1)
    await mkdir(directory)
    await until('06:10:30', async () => (await there(directory)).length === 1)
    await until('06:11:00', async () => (await readBackups(paths)).failure === undefined)
    assert.deepEqual(await there(directory), [six])
  }))

test('ETC-20 a mount point without its disk is no place for the next backup, until the disk is there again or the user takes the directory as it is', () =>
  withBackups(async ({ directory, until, failures, metrics }) => {
    await until('06:00:10', () => metrics.get('skiff_backups_total{result="success"}') === 1)
    await rename(directory, `${directory}-disk`)
    await mkdir(directory)
    await until('07:00:10', () => failures.length === 1)
    assert.match(failures[0] ?? '', /has none of its earlier backups and no file \.skiff-backups: mount its disk/)
    assert.deepEqual(await readdir(directory), [])
    await writeFile(path.join(directory, '.skiff-backups'), '')
    await until('07:10:30', async () => (await there(directory)).length === 1)
    assert.deepEqual(await there(`${directory}-disk`), [six])
  }))

test('ETC-20 a running server follows a plan that is changed', () =>
  withBackups(async ({ directory, until, plan, paths }) => {
    await plan({ schedule: '30 5 * * *', keep: 1 })
    await until('05:30:10', async () => (await there(directory)).length === 1)
    const other = path.join(path.dirname(directory), 'other')
    await mkdir(other)
    await plan({ schedule: '0 6 * * *', place: other })
    await until('06:00:10', async () => (await there(other)).length === 1)
    assert.equal((await there(directory)).length, 1)
    await until('06:01:00', async () => (await readBackups(paths)).place === other)
  }))

for (const damaged of ['{', '{}', 'null'])
  test(`ETC-20 a damaged record does not end the backups: ${damaged}`, () =>
    withBackups(async ({ directory, until, paths }) => {
      await writeFile(paths.backups, damaged)
      await until('06:00:10', async () => (await there(directory)).includes(six))
      await until('06:01:00', async () => (await readBackups(paths)).files.length === 1)
    }))

test('ETC-20 a state of the cluster that cannot be read is a failure of the backup, and does not end the server', () =>
  withBackups(async ({ directory, until, paths, failures, plan }) => {
    await writeFile(paths.state, '{')
    await until('05:30:00', () => failures.length > 0)
    await plan({})
    await until('06:30:00', async () => (await there(directory)).length === 1)
  }))

const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', region: 'eu-central-1', bucket: 'backups' }

async function withBucket(run: (world: World, bucket: Awaited<ReturnType<typeof serveBucket>>, credentials: string) => Promise<void>): Promise<void> {
  const bucket = await serveBucket(keys)
  const place = `s3://${keys.bucket}/clusters/lab?endpoint=${bucket.url}&region=${keys.region}`
  try {
    await withBackups(
      async (world) => {
        const credentials = path.join(world.paths.dir, 'credentials')
        const text = `[other]\naws_access_key_id = x\n[default]\naws_access_key_id = ${keys.accessKeyId}\naws_secret_access_key = ${keys.secretAccessKey}\n`
        await writeFile(credentials, text)
        await chmod(credentials, 0o600)
        await world.plan({ place, credentials, keep: 2 })
        await run(world, bucket, credentials)
      },
      { schedule: '0 23 * * *' },
    )
  } finally {
    await bucket.close()
  }
}

test('ETC-20 backups go to a bucket with signed requests, whole, the newest two are kept, and none stays on the disk', () =>
  withBucket(async (world, bucket) => {
    await world.plan({ ...(await planOf(world)), schedule: '0 * * * *' })
    for (const hour of ['06', '07', '08']) await world.until(`${hour}:00:10`, () => [...bucket.objects.keys()].some((key) => key.includes(`T${hour}`)))
    await world.until('08:01:00', () => world.metrics.get('skiff_backups_total{result="success"}') === 3)
    assert.deepEqual(
      [...bucket.objects.keys()].sort(),
      sevenTo(8).map((name) => `clusters/lab/${name}`),
    )
    for (const { content } of bucket.objects.values()) assert.deepEqual(content.subarray(1024), createHash('sha256').update(content.subarray(0, 1024)).digest())
    assert.deepEqual(bucket.refused, [])
    assert.deepEqual(world.failures, [])
    assert.deepEqual(
      (await there(world.paths.dir)).filter((name) => name.includes('part')),
      [],
    )
  }))

test('ETC-20 a bucket that refuses the keys makes the backup fail with its reason, and new keys are used without a restart', () =>
  withBucket(async (world, bucket, credentials) => {
    const right = await readFile(credentials, 'utf8')
    await writeFile(credentials, right.replace('EXAMPLEKEY', 'OTHERKEY'))
    await world.plan({ ...(await planOf(world)), schedule: '0 * * * *' })
    await world.until('06:00:10', () => world.failures.length === 1)
    assert.match(world.failures[0] ?? '', /^PUT http:.*: status 403, SignatureDoesNotMatch: /)
    assert.equal(bucket.objects.size, 0)
    await writeFile(credentials, right)
    await world.until('06:10:30', () => bucket.objects.size === 1)
  }))

async function planOf({ paths }: World): Promise<BackupPlan> {
  return (JSON.parse(await readFile(paths.state, 'utf8')) as { backup: BackupPlan }).backup
}
