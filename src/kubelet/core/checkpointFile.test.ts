import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkpointFile } from './checkpointFile.ts'

test('a checkpoint is written only when its content changes, also back to an earlier one', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-checkpoint-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  const path = join(directory, 'state')
  const inode = async () => (await stat(path)).ino
  const first = checkpointFile(path, path)
  assert.equal(await first.read(), undefined)
  await first.write(() => 'a')
  const written = await inode()
  await first.write(() => 'a')
  const again = checkpointFile(path, path)
  assert.equal(await again.read(), 'a')
  await again.write(() => 'a')
  assert.equal(await inode(), written, 'the same file')
  // Writing over a directory fails as a full disk does: afterwards nothing is taken for granted.
  const lost = checkpointFile(directory, directory)
  await assert.rejects(lost.write(() => 'a'))
  await assert.rejects(lost.write(() => 'a'))
  await again.write(() => 'b')
  await again.write(() => 'a')
  assert.equal(await checkpointFile(path, path).read(), 'a')
})
