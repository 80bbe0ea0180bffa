import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { realClock } from '#testing/realClock'
import { type LockFileOptions, withLockFile } from './lockFile.ts'

const options: LockFileOptions = { clock: realClock, timeoutMs: 20_000, refuse: (pid) => new Error(`held by ${pid}`) }

async function inTemporary(run: (file: string, dir: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'lock-file-'))
  try {
    await run(join(dir, 'it.lock'), dir)
  } finally {
    await rm(dir, { recursive: true })
  }
}

test('many contenders hold the lock one at a time, and no file remains', () =>
  inTemporary(async (file, dir) => {
    let [inside, most, done] = [0, 0, 0]
    await Promise.all(
      Array.from({ length: 10 }, () =>
        withLockFile(file, options, async () => {
          most = Math.max(most, ++inside)
          await new Promise((resolve) => setImmediate(resolve))
          inside--
          done++
        }),
      ),
    )
    assert.deepEqual([most, done], [1, 10])
    assert.deepEqual(await readdir(dir), [])
  }))

test('it is let go when the work fails', () =>
  inTemporary(async (file) => {
    await assert.rejects(
      withLockFile(file, options, () => Promise.reject(new Error('broken'))),
      /broken/,
    )
    assert.equal(await withLockFile(file, options, async () => 'free'), 'free')
  }))

test('one that lives is waited for, named, and refused after the time', () =>
  inTemporary(async (file) => {
    const waits: (number | undefined)[] = []
    await withLockFile(file, options, () =>
      assert.rejects(
        withLockFile(file, { ...options, timeoutMs: 50, onWait: (pid) => waits.push(pid) }, async () => assert.fail('entered')),
        new RegExp(`held by ${process.pid}`),
      ),
    )
    assert.deepEqual(waits, [process.pid])
  }))

test('one whose holder has ended is taken over, by one of several; one of another machine or of kubectl is not', () =>
  inTemporary(async (file, dir) => {
    let text = ''
    await withLockFile(file, options, async () => {
      text = await readlink(file)
    })
    assert.ok(text.length < 60, 'longer targets take a block of the disk')
    const gone = text.replace(/^\d+/, String(spawnSync('true').pid))
    await symlink(gone, file)
    let inside = 0
    const enter = () =>
      withLockFile(file, options, async () => {
        assert.equal(++inside, 1)
        await new Promise((resolve) => setImmediate(resolve))
        inside--
      })
    await Promise.all([enter(), enter(), enter()])
    assert.deepEqual(await readdir(dir), [])
    const isRefused = () =>
      assert.rejects(
        withLockFile(file, { ...options, timeoutMs: 30 }, async () => {}),
        /held by/,
      )
    await symlink(gone.replace(/\w+$/, '0123456789ab'), file)
    await isRefused()
    await rm(file)
    await writeFile(file, '')
    await isRefused()
    assert.deepEqual(await readdir(dir), ['it.lock'])
  }))
