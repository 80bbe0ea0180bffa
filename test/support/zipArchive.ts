/** Reads single files out of a zip archive: entries that are stored or deflated, as every archiver writes them. Format: PKWARE's APPNOTE, 4.3. */
import assert from 'node:assert/strict'
import { inflateRawSync } from 'node:zlib'

const endOfDirectory = 0x06054b50
const directoryEntry = 0x02014b50
const methods: Readonly<Record<number, (data: Buffer) => Buffer>> = { 0: (data) => data, 8: (data) => inflateRawSync(data) }

/** @throws AssertionError when the archive has no such file, or is none */
export function readFromZip(archive: Buffer, name: string): Buffer {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  assert.ok(end >= 0 && archive.readUInt32LE(end) === endOfDirectory, 'this is no zip archive')
  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    assert.equal(archive.readUInt32LE(at), directoryEntry)
    const nameEnd = at + 46 + archive.readUInt16LE(at + 28)
    if (archive.toString('utf8', at + 46, nameEnd) === name) return contentOf(archive, at)
    at = nameEnd + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32)
  }
  assert.fail(`the archive has no ${name}`)
}

function contentOf(archive: Buffer, entry: number): Buffer {
  const unpack = methods[archive.readUInt16LE(entry + 10)] ?? assert.fail('unknown method of compression')
  const local = archive.readUInt32LE(entry + 42)
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
  return unpack(archive.subarray(start, start + archive.readUInt32LE(entry + 20)))
}
