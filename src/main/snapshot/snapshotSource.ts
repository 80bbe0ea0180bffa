/** A snapshot's file, opened and checked against its trailer (L5). Upstream: etcd etcdutl/snapshot copyAndVerifyDB (v3.6). */
import { readSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import { CommandError } from '#cli/exitCodes'
import { isMissing } from '#host/files'
import { DamagedDatabase, type PageSource } from '#store/bbolt/reader'
import { NoSnapshot } from '#store/snapshot/readSnapshot'
import { digestOf, hasTrailer, trailerBytes } from '#store/snapshot/snapshotFile'

/** Bytes read ahead: pages of one bucket mostly follow each other. */
const windowBytes = 256 * 1024

/**
 * Opens a snapshot for the time of `use`.
 * @param trailer `needed`: a file without one is refused; `ignored`: it is not compared with the file
 * @throws CommandError when the file is missing, is no snapshot, or is damaged
 */
export async function withSnapshotFile<T>(file: string, trailer: 'needed' | 'optional' | 'ignored', use: (source: PageSource) => Promise<T>): Promise<T> {
  try {
    // Opened once: another file of this name would be none that was checked.
    const handle = await open(file, 'r')
    try {
      return await use(sourceOf(handle.fd, await checkedLength(handle, file, trailer)))
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (isMissing(error)) throw new CommandError('notFound', `${file} does not exist`)
    if (error instanceof DamagedDatabase || error instanceof NoSnapshot)
      throw new CommandError('usage', `${file} is no snapshot, or a damaged one: ${messageOf(error)}`, { hint: 'take another file', cause: error })
    throw error
  }
}

/** @returns the bytes of the database in the file */
async function checkedLength(handle: FileHandle, file: string, trailer: 'needed' | 'optional' | 'ignored'): Promise<number> {
  const { size } = await handle.stat()
  const isTrailed = hasTrailer(size)
  if (!isTrailed && trailer === 'needed') {
    throw new CommandError('usage', `${file}: snapshot missing hash but --skip-hash-check=false`, {
      hint: "a file that snapshot save has written has a hash; --skip-hash-check takes a copy of etcd's own file",
    })
  }
  if (!isTrailed) return size
  const length = size - trailerBytes
  if (trailer === 'ignored') return length
  const wanted = Buffer.alloc(trailerBytes)
  await handle.read(wanted, 0, trailerBytes, length)
  const found = await digestOf(handle, length)
  if (!wanted.equals(found)) {
    throw new CommandError('usage', `${file}: expected sha256 [${wanted.join(' ')}], got [${found.join(' ')}]`, {
      hint: 'the file is not what was saved: copy it again from where it was saved, or take another one',
    })
  }
  return length
}

function sourceOf(fd: number, length: number): PageSource {
  let window = Buffer.alloc(0)
  let start = 0
  const readAt = (position: number, bytes: number) => {
    const piece = Buffer.allocUnsafeSlow(bytes)
    for (let done = 0; done < bytes; ) {
      const count = readSync(fd, piece, done, bytes - done, position + done)
      if (count === 0) throw new DamagedDatabase('the file became shorter while it was read')
      done += count
    }
    return piece
  }
  return {
    length,
    read: (position, bytes) => {
      if (bytes > windowBytes) return readAt(position, bytes)
      if (position < start || position + bytes > start + window.length) {
        start = position
        window = readAt(position, Math.min(windowBytes, length - position))
      }
      return window.subarray(position - start, position - start + bytes)
    },
  }
}
