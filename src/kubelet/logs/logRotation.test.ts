import assert from 'node:assert/strict'
import { closeSync, openSync, writeSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { noLog } from '#base/log'
import { realClock } from '#testing/realClock'
import { kubeletConfig } from '../core/config.ts'
import { readLog } from './criLog.ts'
import { rotationStamp, sortRotated } from './logFiles.ts'
import { removeContainerLogs, rotateIfGrown } from './logRotation.ts'

/** A container that writes numbered lines, and the runtime that reopens its log. */
async function writingContainer(files: number) {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-logs-'))
  const path = join(directory, '0.log')
  let descriptor = openSync(path, 'a')
  let line = 0
  let nowMs = Date.parse('2026-01-02T03:04:05Z')
  const state = { running: true }
  const clock = { now: () => nowMs, sleep: () => new Promise((resolve) => setImmediate(resolve)) } as unknown as Clock
  const reopen = async () => {
    const before = descriptor
    // The runtime may write a last line into the renamed file after the new one is there.
    descriptor = openSync(path, 'a')
    writeSync(before, `2026-01-02T03:04:05.000000001Z stdout F ${line++}\n`)
    closeSync(before)
  }
  const runtime = { containerStatus: async () => ({ logPath: path }), reopenContainerLog: reopen }
  const config = kubeletConfig({ nodeName: 'n', containerLogMaxSizeBytes: 64, containerLogMaxFiles: files })
  const context = { runtime, host: { path: (name: string) => name }, config, clock, log: noLog } as unknown as Parameters<typeof rotateIfGrown>[0]
  return {
    directory,
    path,
    state,
    clock,
    context,
    written: () => line,
    write: (count: number) => {
      for (let i = 0; i < count; i++) writeSync(descriptor, `2026-01-02T03:04:05.000000001Z stdout F ${line++}\n`)
    },
    rotate: async () => {
      nowMs += 1000
      assert.equal(await rotateIfGrown(context, 'id'), true)
    },
    end: async () => {
      closeSync(descriptor)
      await rm(directory, { recursive: true })
    },
  }
}

test('KUB-25 rotated logs are named by time, sorted, and compressed ones replace their originals', () => {
  assert.match(rotationStamp(Date.parse('2026-01-02T03:04:05Z')), /^2026010[12]-\d{2}0405$/)
  assert.deepEqual(sortRotated(['l.20260102-1', 'l.20260101-1.gz', 'l.20260103-1', 'l.20260103-1.gz', 'l.20260104-1.tmp']), {
    inUse: ['l.20260101-1.gz', 'l.20260102-1', 'l.20260103-1.gz'],
    unused: ['l.20260103-1', 'l.20260104-1.tmp'],
  })
})

test('KUB-25 at most containerLogMaxFiles logs stay: the newest plain, the one before it plain, older ones compressed', async () => {
  const container = await writingContainer(4)
  try {
    for (let round = 0; round < 6; round++) {
      container.write(10)
      await container.rotate()
    }
    container.write(1)
    const names = (await readdir(container.directory)).sort()
    assert.equal(names.length, 4, names.join())
    assert.deepEqual(
      names.map((name) => name.endsWith('.gz')),
      [false, true, true, false],
    )
    const [, oldest = ''] = names
    assert.match(gunzipSync(await readFile(join(container.directory, oldest))).toString(), / stdout F 33\n/)
    await removeContainerLogs(container.context, 'id')
    assert.deepEqual(await readdir(container.directory), [])
  } finally {
    await container.end()
  }
})

test('KUB-25 leftovers of a failed rotation are removed, and a log that cannot be reopened keeps its name', async () => {
  const container = await writingContainer(5)
  try {
    container.write(10)
    await writeFile(`${container.path}.20200101-000000.tmp`, 'half')
    const refusing = { ...container.context, runtime: { ...container.context.runtime, reopenContainerLog: () => Promise.reject(new Error('no')) } }
    await assert.rejects(rotateIfGrown(refusing, 'id'), /no/)
    assert.deepEqual(await readdir(container.directory), ['0.log'])
  } finally {
    await container.end()
  }
})

for (const behind of [0, 3]) {
  test(`KUB-25 logs -f loses no line of a fast writer across rotations, ${behind} of them behind`, async () => {
    const container = await writingContainer(10)
    try {
      container.write(5)
      const following = { clock: container.clock, isRunning: async () => container.state.running }
      using limit = deadlineScope({ clock: realClock, ms: 30_000 })
      const reader = readLog(container.path, { follow: true, timestamps: false }, following, limit.signal)
      let text = ''
      const read = async () => {
        for await (const chunk of reader) text += Buffer.from(chunk).toString()
      }
      // Opened, and its first bytes taken, before anything is renamed.
      text += Buffer.from((await reader.next()).value as Uint8Array).toString()
      for (let round = 0; round < behind; round++) {
        container.write(50)
        await container.rotate()
      }
      const done = read()
      for (let round = 0; round < 4; round++) {
        container.write(500)
        await container.rotate()
        await new Promise((resolve) => setImmediate(resolve))
      }
      container.write(5)
      container.state.running = false
      await done
      assert.deepEqual(
        text.trim().split('\n').map(Number),
        Array.from({ length: container.written() }, (_, index) => index),
      )
    } finally {
      await container.end()
    }
  })
}
