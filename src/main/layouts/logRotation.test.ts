import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { lastLines } from '#cli/commands/logs'
import { backupsOf } from '../apiserver/rotatingFile.ts'
import { logRotation } from './logRotation.ts'

test('a log that has grown is copied while its writer continues, few copies are kept, and its last lines are found across them', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-logs-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const [file, small] = [path.join(folder, 'server.log'), path.join(folder, 'agent.log')]
  const clock = new VirtualClock('2026-01-02T03:04:05Z', () => new Promise((resolve) => setImmediate(resolve)))
  fs.writeFileSync(small, 'a\n')
  const writer = fs.openSync(file, 'a')
  t.after(() => fs.closeSync(writer))
  const stop = new AbortController()
  const running = logRotation([file, small, path.join(folder, 'missing.log')], { clock, log: noLog }, { maxBytes: 9, maxBackups: 2 }).run(stop.signal)
  // Old copies are removed asynchronously: advance the clock only after the number of copies is as expected.
  const backups = async (count: number) => {
    for (let tries = 0; tries < 10_000; tries++) {
      const found = await backupsOf(file)
      if (found.length === count && fs.statSync(file).size === 0) return found
      await clock.advance(100)
    }
    return assert.fail('the log is not moved aside')
  }
  for (const [round, want] of [1, 2, 2, 2].entries()) {
    fs.writeSync(writer, `${round} first\n${round} second\n`)
    assert.equal((await backups(want)).length, want)
    await clock.advance(1000)
  }
  fs.writeSync(writer, 'last\n')
  const files = [file, ...(await backupsOf(file)).map((one) => one.file)]
  assert.deepEqual(await lastLines(files, 3), ['3 first', '3 second', 'last'])
  assert.deepEqual(await lastLines(files, 100), ['2 first', '2 second', '3 first', '3 second', 'last'])
  assert.deepEqual(await lastLines(files, 0), [])
  assert.equal(fs.readFileSync(small, 'utf8'), 'a\n')
  assert.equal(fs.statSync(files[1] ?? '').mode & 0o777, 0o600)
  stop.abort(new Error('the test is over'))
  await running
})
