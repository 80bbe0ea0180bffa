/** ETC-20: what a snapshot's reader does with large values, and with numbers that no etcd writes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseWriter } from '../bbolt/writer.ts'
import type { StoredChange } from '../store.ts'
import { encodeKeyValue, revisionKey } from './encoding.ts'
import { readSnapshot } from './readSnapshot.ts'

const change = (modRevision: number, bytes: number): StoredChange => ({
  key: `k${modRevision}`,
  value: Buffer.alloc(bytes),
  createRevision: modRevision,
  modRevision,
  version: 1,
  lease: 0,
  sub: 0,
})

function fileOf(changes: readonly StoredChange[]) {
  const pages: Buffer[] = []
  const writer = new DatabaseWriter((page) => pages.push(page))
  const keys = writer.bucket(Buffer.from('key'))
  for (const one of changes) keys.add(revisionKey(one.modRevision, one.sub), encodeKeyValue(one))
  writer.bucket(Buffer.from('meta')).add(Buffer.from('term'), Buffer.alloc(8))
  const file = Buffer.concat([writer.end().head, ...pages])
  return { length: file.length, read: (position: number, length: number) => file.subarray(position, position + length) }
}

test('ETC-20 changes with large values are handed over a few at a time', async () => {
  const changes = Array.from({ length: 24 }, (_, at) => change(at + 2, 1 << 20))
  const sizes: number[] = []
  await readSnapshot(fileOf(changes), (some) => void sizes.push(some.length))
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    changes.length,
  )
  assert.ok(Math.max(...sizes) <= 4, `at most 4 MiB: ${sizes}`)
})

for (const damage of [{ sub: 2 ** 31 }, { version: 2 ** 32 }])
  test(`ETC-20 a change with ${JSON.stringify(damage)} is refused`, async () => {
    await assert.rejects(
      readSnapshot(fileOf([{ ...change(2, 1), ...damage }]), () => {}),
      { name: 'NoSnapshot', message: /^revision 2 has more changes/ },
    )
  })
