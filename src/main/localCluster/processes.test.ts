/** Background processes and their pid files. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { allPids, commandOf, signalIfThere } from '#host/processes'
import { realClock } from '#testing/realClock'
import { spawnDetached } from './processes.ts'

test('a process whose pid file cannot be written does not run on', { skip: process.platform === 'linux' ? false : 'reads /proc' }, async (t) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-processes-'))
  t.after(() => fs.rm(folder, { recursive: true }))
  // The kernel shows the command line of a process from its start on.
  const running = async () => {
    const commands = await Promise.all((await allPids()).map(async (pid) => ({ pid, words: await commandOf(pid) })))
    return commands.filter(({ words }) => words.includes(folder)).map(({ pid }) => pid)
  }
  t.after(async () => {
    for (const pid of await running()) signalIfThere(pid, 'SIGKILL')
  })
  const logFile = path.join(folder, 'log')
  const words = [process.execPath, '-e', 'require("node:net").createServer().listen(0, "127.0.0.1")', folder]
  const started = spawnDetached(words, { logFile, pidFile: path.join(logFile, 'pid'), clock: realClock })
  await assert.rejects(started, /ENOTDIR|EEXIST/)
  assert.deepEqual(await running(), [])
})

test('a program that does nothing else learns why a process was not started', { skip: process.platform === 'linux' ? false : 'reads /proc' }, async (t) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-processes-'))
  t.after(() => fs.rm(folder, { recursive: true }))
  const logFile = path.join(folder, 'log')
  const script = `
    import { spawnDetached } from ${JSON.stringify(new URL('processes.ts', import.meta.url).href)}
    const options = { logFile: ${JSON.stringify(logFile)}, pidFile: ${JSON.stringify(path.join(logFile, 'pid'))}, clock: { now: () => 0 } }
    await spawnDetached(['/bin/sleep', '600'], options).catch(({ code }) => console.log(code))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], { timeout: 60_000 })
  assert.match(stdout, /^(ENOTDIR|EEXIST)\n$/)
})
