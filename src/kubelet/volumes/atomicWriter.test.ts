import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { validatePath, writeAtomically } from './atomicWriter.ts'
import { checkHostPath } from './hostPath.ts'
import { selectItems } from './payloads.ts'

async function inTemporary(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'volumes-'))
  try {
    await run(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const payload = (files: Record<string, string>, mode = 0o644) => new Map(Object.entries(files).map(([path, text]) => [path, { data: Buffer.from(text), mode }]))

const when = { nowMs: Date.UTC(2026, 0, 2, 3, 4, 5), turn: () => Promise.resolve() }

test('KUB-11 files appear through ..data and are replaced together', () =>
  inTemporary(async (directory) => {
    const target = join(directory, 'v')
    assert.equal(await writeAtomically(target, payload({ a: '1', 'dir/b': '2' }), when), true)
    assert.equal(await readFile(join(target, 'dir/b'), 'utf8'), '2')
    assert.equal(await readlink(join(target, 'a')), '..data/a')
    const first = await readlink(join(target, '..data'))
    assert.equal(await writeAtomically(target, payload({ a: '1', 'dir/b': '2' }), when), false)
    assert.equal(await readlink(join(target, '..data')), first)
    assert.match(first, /^\.\.2026_01_02_03_04_05\.\w+$/)
    assert.equal(await writeAtomically(target, payload({ a: 'new', c: '3' }), when), true)
    assert.deepEqual((await readdir(target)).filter((name) => !name.startsWith('..')).sort(), ['a', 'c'])
    assert.equal(await readFile(join(target, 'a'), 'utf8'), 'new')
    assert.deepEqual((await readdir(target)).filter((name) => name.startsWith('..')).length, 2)
  }))

test('KUB-11 modes are kept, and a group may read', () =>
  inTemporary(async (directory) => {
    const mode = async (name: string) => (await stat(join(directory, name))).mode & 0o777
    await writeAtomically(directory, payload({ a: '1' }, 0o400), when)
    assert.equal(await mode('a'), 0o400)
    if (process.getuid?.() !== 0) return
    await writeAtomically(directory, payload({ a: '2' }, 0o400), { ...when, fsGroup: 1234 })
    assert.equal(await mode('a'), 0o440)
    assert.equal((await stat(join(directory, 'a'))).gid, 1234)
  }))

for (const path of ['', '/abs', '../up', 'a/../b', '..hidden', 'x'.repeat(256)])
  test(`the path ${JSON.stringify(path.slice(0, 20))} is refused`, () => assert.throws(() => validatePath(path), /invalid path/))

test('items pick, rename and set modes; a missing key fails unless optional', () => {
  const data = new Map([['k', Buffer.from('v')]])
  assert.deepEqual(selectItems('configmap', data, undefined, 0o644, false), new Map([['k', { data: Buffer.from('v'), mode: 0o644 }]]))
  assert.deepEqual(
    selectItems('configmap', data, [{ key: 'k', path: 'p/q', mode: 0o600 }], 0o644, false),
    new Map([['p/q', { data: Buffer.from('v'), mode: 0o600 }]]),
  )
  assert.throws(() => selectItems('configmap', data, [{ key: 'nope', path: 'p' }], 0o644, false), {
    message: 'configmap references non-existent config key: nope',
  })
  assert.equal(selectItems('configmap', data, [{ key: 'nope', path: 'p' }], 0o644, true).size, 0)
})

test('host paths are checked, and created where they may be', () =>
  inTemporary(async (directory) => {
    const path = join(directory, 'x')
    await assert.rejects(checkHostPath(path, '/node/x', 'Directory'), { message: "hostPath /node/x doesn't exist" })
    await checkHostPath(path, '/node/x', '')
    await checkHostPath(path, '/node/x', 'DirectoryOrCreate')
    await checkHostPath(path, '/node/x', 'Directory')
    await assert.rejects(checkHostPath(path, '/node/x', 'FileOrCreate'), { message: "hostPath type check failed: /node/x is not a file, it's a Directory" })
    await assert.rejects(checkHostPath(path, '/node/x', 'Socket'), /is not a socket file/)
  }))

test('KUB-11 a volume that asks for one long key thousands of times is refused at 64 MiB', () => {
  const data = new Map([['k', new Uint8Array(1_000_000)]])
  const items = Array.from({ length: 1000 }, (_, i) => ({ key: 'k', path: `f${i}` }))
  assert.throws(() => selectItems('configmap', data, items, 0o644, false), { message: 'the files of the volume have more than 67108864 bytes' })
  assert.equal(selectItems('configmap', data, items.slice(0, 60), 0o644, false).size, 60)
})
