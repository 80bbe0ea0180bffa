/**
 * Files with a snapshot (L2): a database in bbolt's format, and the SHA-256 of it behind it. Upstream: etcd etcdutl/snapshot, client/v3/snapshot (v3.6).
 */
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { DatabaseWriter, firstPages, pageBytes } from '../bbolt/writer.ts'
import type { StoreSnapshot } from '../store.ts'
import { bucketsOf, type SnapshotFacts } from './buckets.ts'

export const trailerBytes = 32
/** Databases have whole pages, so a file with this remainder has a trailer. Upstream: hasChecksum. */
const sectorBytes = 512
/** Bytes written, or read, at a time. */
const pieceBytes = 1 << 20

export function hasTrailer(fileBytes: number): boolean {
  return fileBytes % sectorBytes === trailerBytes
}

/** Writes the database of a snapshot, without a trailer. @returns its length in bytes @throws StoreError; Error of the file system */
export async function writeDatabase(file: FileHandle, snapshot: StoreSnapshot, facts: SnapshotFacts): Promise<number> {
  let waiting: Buffer[] = []
  let waitingBytes = 0
  let position = firstPages * pageBytes
  const flush = async () => {
    const bytes = Buffer.concat(waiting, waitingBytes)
    waiting = []
    waitingBytes = 0
    await writeAll(file, bytes, position)
    position += bytes.length
  }
  const writer = new DatabaseWriter((pages) => {
    waiting.push(pages)
    waitingBytes += pages.length
  })
  for (const { name, entries } of bucketsOf(snapshot, facts)) {
    const bucket = writer.bucket(Buffer.from(name))
    for await (const some of entries) {
      for (const { key, value } of some) bucket.add(key, value)
      if (waitingBytes >= pieceBytes) await flush()
    }
  }
  const { head, pages } = writer.end()
  await flush()
  await writeAll(file, head, 0)
  return pages * pageBytes
}

export async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
}

/** The first `length` bytes of a file, piece by piece. @throws Error when the file ends before */
export async function* piecesOf(file: FileHandle, length: number, bytesEach = pieceBytes): AsyncGenerator<Buffer> {
  for (let position = 0; position < length; ) {
    const piece = Buffer.allocUnsafe(Math.min(bytesEach, length - position))
    const { bytesRead } = await file.read(piece, 0, piece.length, position)
    if (bytesRead === 0) throw new Error('the file became shorter while it was read')
    position += bytesRead
    yield piece.subarray(0, bytesRead)
  }
}

/** The SHA-256 of the first `length` bytes of a file. */
export async function digestOf(file: FileHandle, length: number): Promise<Buffer> {
  const hash = createHash('sha256')
  for await (const piece of piecesOf(file, length)) hash.update(piece)
  return hash.digest()
}
