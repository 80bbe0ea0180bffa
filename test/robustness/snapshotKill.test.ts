/**
 * ETC-20, ETC-13: kill -9 before each change to a file during `skiff snapshot save`, `skiff snapshot restore` and a defragmentation. What was there before or what
 * comes of the command is there whole, and the same command succeeds next.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { sourceProgram } from '../support/sourceProgram.ts'
import { changeCluster, contentOf, makeCluster, savedFile, storeFolder, withStore } from './snapshotKillOperations.ts'

const workerFile = join(import.meta.dirname, 'snapshotKillWorker.ts')
/** Clusters that are worked on at the same time. */
const lanes = 2
const mostSteps = 60

/** @returns whether the process was killed before it had come to its end */
async function isKilled(operation: string, home: string, step: number): Promise<boolean> {
  const child = spawn(process.execPath, [...sourceProgram(workerFile), operation, home, String(step)], { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code, signal] = await once(child, 'exit')
  assert.ok(code === 0 || signal === 'SIGKILL', `it ended with ${code ?? signal}`)
  return signal === 'SIGKILL'
}

const put = (home: string, key: string, value: number) =>
  withStore(home, (store) => store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.alloc(5000, value) }] }))

/** A cluster with a snapshot of an earlier state. @returns what is in the snapshot and in the store */
async function prepare(home: string): Promise<{ readonly saved: string; readonly stored: string }> {
  await makeCluster(home)
  for (const key of ['/registry/a', '/registry/b']) await put(home, key, 1)
  const saved = await contentOf(home)
  await changeCluster('save', home)
  for (const key of ['/registry/b', '/registry/c']) await put(home, key, 2)
  return { saved, stored: await contentOf(home) }
}

/** Kills the operation before its step, in a cluster of its own, and checks. @returns false when the operation has no such step */
async function killAt(operation: string, step: number, check: (home: string, before: { readonly saved: string; readonly stored: string }) => Promise<void>) {
  const home = await mkdtemp(join(tmpdir(), 'skiff-kill-'))
  try {
    const before = await prepare(home)
    const wasKilled = await isKilled(operation, home, step)
    if (wasKilled) await check(home, before)
    return wasKilled
  } catch (error) {
    throw new Error(`${operation}, killed before step ${step}: ${error}`, { cause: error })
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** @returns how often the operation was killed: once before each of its steps */
async function killEverywhere(operation: string, check: Parameters<typeof killAt>[2]): Promise<number> {
  let next = 0
  let kills = 0
  const lane = async () => {
    while (next < mostSteps && (await killAt(operation, next++, check))) kills++
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  assert.ok(kills < mostSteps, 'every step was reached')
  return kills
}

const options = { timeout: 300_000 }

test('ETC-20 kill -9 during a save leaves the old file or the new one, and the next save removes what is left', options, async () => {
  const kills = await killEverywhere('save', async (home, { saved, stored }) => {
    await changeCluster('restore', home)
    assert.ok([saved, stored].includes(await contentOf(home)))
    const before = await readFile(savedFile(home))
    await put(home, '/registry/later', 3)
    await changeCluster('save', home)
    assert.notDeepEqual(await readFile(savedFile(home)), before)
    assert.deepEqual((await readdir(home)).sort(), ['clusters', 'saved.db'])
  })
  assert.ok(kills >= 5, `${kills} kills`)
})

test('ETC-20 kill -9 during a restore leaves the old store or the new one whole, and the next restore succeeds', options, async () => {
  const kills = await killEverywhere('restore', async (home, { saved, stored }) => {
    const found = await contentOf(home)
    assert.ok([saved, stored].includes(found), found)
    const backup = await changeCluster('restore', home)
    assert.equal(await contentOf(home), saved)
    assert.equal(await contentOf(home, backup), found)
    assert.deepEqual(
      (await readdir(storeFolder(home))).filter((name) => name.includes('restore')),
      [],
    )
  })
  assert.ok(kills >= 8, `${kills} kills`)
})

test('ETC-13 kill -9 during a defragmentation loses nothing, and the next one leaves no other file', options, async () => {
  const kills = await killEverywhere('defragment', async (home, { stored }) => {
    assert.equal(await contentOf(home), stored)
    await put(home, '/registry/later', 3)
    const later = await contentOf(home)
    await changeCluster('defragment', home)
    assert.equal(await contentOf(home), later)
    assert.deepEqual((await readdir(storeFolder(home))).filter((name) => !name.endsWith('-holder')).sort(), ['data.mdb', 'data.mdb-journal', 'data.mdb-lock'])
  })
  assert.ok(kills >= 5, `${kills} kills`)
})
