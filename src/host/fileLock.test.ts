import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { lockFile } from './fileLock.ts'

const directory = mkdtempSync(join(tmpdir(), 'skiff-lock-'))
after(() => rmSync(directory, { recursive: true }))
const refuse = (pid: number | undefined) => new Error(`held by ${pid}`)

test('a file that this process has locked is refused with its pid, until it is released', async () => {
  const file = join(directory, 'own')
  const release = await lockFile(file, { waitMs: 0, refuse })
  const waited: (number | undefined)[] = []
  await assert.rejects(lockFile(file, { waitMs: 100, refuse, onWait: (pid) => waited.push(pid) }), { message: `held by ${process.pid}` })
  assert.deepEqual(waited, [process.pid])
  release()
  ;(await lockFile(file, { waitMs: 0, refuse }))()
})

test('a wait for a locked file ends with its signal, at once and with the holder in the message', async () => {
  const file = join(directory, 'stopped')
  const release = await lockFile(file, { waitMs: 0, refuse })
  const stop = new AbortController()
  const waiting = lockFile(file, { waitMs: 60_000, refuse, signal: stop.signal, onWait: () => stop.abort(new Error('SIGTERM')) })
  await assert.rejects(waiting, { message: `stopped by SIGTERM while waiting: held by ${process.pid}` })
  release()
})

test('a holder in another pid namespace keeps the lock until it ends, and its pid is not taken for one of this namespace', {
  skip: process.getuid?.() === 0 ? false : 'pid namespaces need root',
}, async () => {
  const file = join(directory, 'namespace')
  const program = `import(${JSON.stringify(join(import.meta.dirname, 'fileLock.ts'))}).then(({ lockFile }) =>
    lockFile(${JSON.stringify(file)}, { waitMs: 0, refuse: () => new Error('held') })).then(() => { process.stdin.resume(); process.stdout.write('locked') })`
  const command = ['--pid', '--fork', '--kill-child', process.execPath, '--import', 'tsx', '-e', program]
  const child = spawn('unshare', command, { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    await once(child.stdout, 'data')
    await assert.rejects(lockFile(file, { waitMs: 0, refuse }), { message: 'held by undefined' })
    const later = lockFile(file, { waitMs: 10_000, refuse })
    child.kill('SIGKILL')
    ;(await later)()
  } finally {
    child.kill('SIGKILL')
  }
})

test('a process that is killed leaves no lock behind', async () => {
  const file = join(directory, 'killed')
  const program = `import(${JSON.stringify(join(import.meta.dirname, 'fileLock.ts'))}).then(({ lockFile }) =>
    lockFile(${JSON.stringify(file)}, { waitMs: 0, refuse: () => new Error('held') })).then(() => { process.stdin.resume(); process.stdout.write('locked') })`
  const child = spawn(process.execPath, ['--import', 'tsx', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    await once(child.stdout, 'data')
    await assert.rejects(lockFile(file, { waitMs: 0, refuse }), { message: `held by ${child.pid}` })
    const later = lockFile(file, { waitMs: 10_000, refuse })
    child.kill('SIGKILL')
    ;(await later)()
  } finally {
    child.kill('SIGKILL')
  }
})
