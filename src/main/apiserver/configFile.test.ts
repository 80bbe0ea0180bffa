import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { realClock } from '#testing/realClock'
import { createConfigFile } from './configFile.ts'

test('a file is followed through rewrites and through links that are swapped', async (t) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-config-file-'))
  const stop = new AbortController()
  t.after(async () => {
    stop.abort()
    await fs.rm(folder, { recursive: true })
  })
  const name = path.join(folder, 'config')
  await fs.writeFile(path.join(folder, 'v1'), 'one')
  await fs.symlink('v1', name)
  const file = createConfigFile(name, realClock)
  assert.equal(await file.read(), 'one')
  const seen: string[] = []
  let wake = () => {}
  file.follow((text) => {
    seen.push(text)
    wake()
  }, stop.signal)
  const next = () => new Promise<void>((resolve) => (wake = resolve))
  const first = next()
  await fs.writeFile(path.join(folder, 'v1'), 'two')
  await first
  const second = next()
  await fs.writeFile(path.join(folder, 'v2'), 'three')
  await fs.symlink('v2', path.join(folder, 'new'))
  await fs.rename(path.join(folder, 'new'), name)
  await second
  assert.deepEqual(seen, ['two', 'three'])
})

test('a file that is not there is named', async () => {
  await assert.rejects(createConfigFile('/nonexistent/config', realClock).read(), /^Error: \/nonexistent\/config cannot be read: ENOENT/)
})
