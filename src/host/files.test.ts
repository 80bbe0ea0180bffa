import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeDirectory, makeDirectorySync, readTextIfExists, writeFileAtomic } from './files.ts'

test('a replaced file is whole and no temporary file remains, even after a failed write', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-files-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'state')
  await writeFileAtomic(file, 'first')
  // As a full disk does it: opening works, writing does not.
  const unwritable = new Proxy(Buffer.from('second'), {})
  await assert.rejects(writeFileAtomic(file, unwritable))
  assert.deepEqual([await readTextIfExists(file), await readdir(directory)], ['first', ['state']])
  await symlink(file, join(directory, 'folder'))
  await assert.rejects(writeFileAtomic(join(directory, 'folder', 'below'), 'x'))
  assert.deepEqual((await readdir(directory)).sort(), ['folder', 'state'])
})

test('a directory is made with those above it, by two at once as well, and what is in the way is named', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-files-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  assert.equal(await makeDirectory(join(directory, 'a/b'), 0o750), join(directory, 'a'))
  assert.equal(await makeDirectory(join(directory, 'a/b'), 0o750), undefined)
  assert.equal((await stat(join(directory, 'a/b'))).mode & 0o777, 0o750)
  await Promise.all([1, 2, 3].map(() => makeDirectory(join(directory, 'c/d/e'))))
  await writeFileAtomic(join(directory, 'file'), '')
  await assert.rejects(makeDirectory(join(directory, 'file/below')), { code: 'ENOTDIR' })
  makeDirectorySync(join(directory, 'f/g'), 0o750)
  makeDirectorySync(join(directory, 'f/g'), 0o750)
  assert.equal((await stat(join(directory, 'f/g'))).mode & 0o777, 0o750)
  assert.throws(() => makeDirectorySync(join(directory, 'file/below')), { code: 'ENOTDIR' })
})

test('a directory is refused where the one above it is there and takes no entries', {
  skip: process.platform === 'linux' ? false : 'needs /proc',
}, async () => {
  // A recursive mkdir of Node never returns here.
  await assert.rejects(makeDirectory('/proc/skiff/below'), { code: 'ENOENT', path: '/proc/skiff' })
  assert.throws(() => makeDirectorySync('/proc/skiff/below'), { code: 'ENOENT', path: '/proc/skiff' })
})
