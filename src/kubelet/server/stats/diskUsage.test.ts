import assert from 'node:assert/strict'
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'node:test'
import { directoryUsage } from './diskUsage.ts'

function inTemporary(run: (directory: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const directory = mkdtempSync(join(tmpdir(), 'usage-'))
    try {
      await run(directory)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

test(
  'KUB-19 a directory is added up: files once, links as themselves, what is below',
  inTemporary(async (directory) => {
    mkdirSync(join(directory, 'a/b'), { recursive: true })
    writeFileSync(join(directory, 'a/b/file'), Buffer.alloc(8192, 1))
    linkSync(join(directory, 'a/b/file'), join(directory, 'again'))
    symlinkSync('/', join(directory, 'link'))
    const { bytes, inodes } = await directoryUsage(directory)
    assert.ok(bytes >= 8192 && bytes < 8192 + 6 * 4096 + 1, String(bytes))
    assert.equal(inodes, 5)
    assert.deepEqual(await directoryUsage(join(directory, 'gone')), { bytes: 0, inodes: 0 })
    assert.equal((await directoryUsage(join(directory, 'again'))).inodes, 1)
  }),
)

test(
  'KUB-19 a directory of 140,000 entries is added up, and others get turns meanwhile',
  inTemporary(async (directory) => {
    const entries = 140_000
    for (let i = 0; i < entries; i++) symlinkSync('x', join(directory, String(i)))
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    assert.equal((await directoryUsage(directory)).inodes, entries + 1)
    delay.disable()
    assert.ok(delay.max / 1e6 < 250, `a turn of ${delay.max / 1e6} ms`)
  }),
)
