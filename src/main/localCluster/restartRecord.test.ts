import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { makePrivateDirectory } from '#host/files'
import { realClock } from '#testing/realClock'
import { clusterPaths } from './clusterState.ts'
import { isReadySince } from './clusterStatus.ts'
import { lastLinesOf, tellingLine } from './logEnd.ts'
import { readRestarts, recordRestart } from './restartRecord.ts'

async function inTemporary(run: (dir: string) => Promise<void>): Promise<void> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-restarts-'))
  await run(dir).finally(() => fs.rm(dir, { recursive: true }))
}

test('restarts are counted by what ended, and the crash log keeps the newest whole entries within its bound', () =>
  inTemporary(async (dir) => {
    const paths = clusterPaths(dir, 'a')
    await makePrivateDirectory(paths.dir)
    assert.deepEqual({ ...(await readRestarts(paths)) }, {})
    const lines = Array.from({ length: 20 }, () => 'x'.repeat(200))
    for (let i = 1; i <= 40; i++) await recordRestart(paths, { what: 'server', ending: `exit code ${i}`, atMs: i * 1000, lines }, realClock)
    await recordRestart(paths, { what: 'a-node-1', ending: 'signal SIGKILL', atMs: 41_000, lines: [] }, realClock)
    assert.deepEqual(
      { ...(await readRestarts(paths)) },
      {
        server: { count: 40, lastMs: 40_000, ending: 'exit code 40' },
        'a-node-1': { count: 1, lastMs: 41_000, ending: 'signal SIGKILL' },
      },
    )
    const text = await fs.readFile(paths.crashes, 'utf8')
    assert.ok(text.length <= 64 * 1024 && text.length > 50 * 1024, `${text.length}`)
    assert.match(text, /^1970-01-01T00:00:\d\dZ server ended: exit code \d+ \(\d+ in all\)\n {4}x/)
    assert.ok(text.endsWith('1970-01-01T00:00:41Z a-node-1 ended: signal SIGKILL (1 in all)\n'))
  }))

test('ends that are recorded at once are all counted and all in the log', () =>
  inTemporary(async (dir) => {
    const paths = clusterPaths(dir, 'a')
    await makePrivateDirectory(paths.dir)
    const ended = ['server', 'a-node-1', 'server', 'a-node-2', 'server']
    await Promise.all(ended.map((what) => recordRestart(paths, { what, ending: 'signal SIGKILL', atMs: 0, lines: [] }, realClock)))
    const counts = Object.entries(await readRestarts(paths)).map(([what, { count }]) => `${what} ${count}`)
    assert.deepEqual(counts.sort(), ['a-node-1 1', 'a-node-2 1', 'server 3'])
    assert.equal((await fs.readFile(paths.crashes, 'utf8')).split('\n').length, ended.length + 1)
    assert.deepEqual((await fs.readdir(paths.dir)).sort(), ['crashes.log', 'restarts.json'])
  }))

test('a node is ready by a heartbeat of its last start, not by the condition of an earlier one', () => {
  const node = { ready: true, heartbeatMs: 10_000, message: '', address: '' }
  assert.equal(isReadySince(node, 10_900), true, 'heartbeats are in whole seconds')
  assert.equal(isReadySince(node, 11_000), false)
  assert.equal(isReadySince({ ...node, ready: false }, 0), false)
  assert.equal(isReadySince(undefined, 0), false)
})

test('the last lines of a log are those since a size, and the telling one is the reason of the end, else an error, else a warning', () =>
  inTemporary(async (dir) => {
    const file = path.join(dir, 'server.log')
    assert.deepEqual(await lastLinesOf(file, 10), [])
    const old = 'E1124 15:00:00.000000 1 a] "Old"\n'
    await fs.writeFile(file, `${old}I1124 15:00:01.000000 1 a] "Info"\nW1124 15:00:02.000000 1 a] "Warning"\n`)
    const lines = await lastLinesOf(file, 10, old.length)
    assert.deepEqual([lines.length, tellingLine(lines)], [2, 'W1124 15:00:02.000000 1 a] "Warning"'])
    assert.equal(tellingLine(await lastLinesOf(file, 10)), old.trimEnd())
    assert.equal(tellingLine([...lines, 'skiff: the store is locked', 'E1124 15:00:03.000000 1 a] "Later"']), 'skiff: the store is locked')
    assert.equal(tellingLine(['I1124 15:00:01.000000 1 a] "Info"']), undefined)
    // The log was moved aside after the size was taken.
    assert.equal((await lastLinesOf(file, 1, 10_000)).length, 1)
  }))
