/**
 * Space at the end of LMDB's file that LMDB does not use yet (L2). LMDB's binding can end the process when a commit meets a full disk, so the space of a commit is
 * allocated before LMDB gets it. Other programs that fill the disk cannot take this space away.
 */
import { closeSync, openSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** What stays free on the disk for pid files and logs. */
const leftForOthersBytes = 1 << 20
const pieceBytes = 1 << 20

/** Whether the file has this many bytes beyond the `used` ones; it grows where it has not and the disk has room. */
export function hasReserve(path: string, used: number, bytes: number): boolean {
  const missing = used + bytes - statSync(path).size
  if (missing <= 0) return true
  if (freeBytes(path) < missing + leftForOthersBytes) return false
  try {
    appendZeros(path, missing)
    return true
  } catch {
    // Another program was faster, or there is a quota.
    return false
  }
}

/** Appending is safe while LMDB writes beyond the end: each write of this function starts at the end of that moment. */
function appendZeros(path: string, bytes: number): void {
  const file = openSync(path, 'a')
  try {
    const zeros = Buffer.alloc(Math.min(bytes, pieceBytes))
    for (let left = bytes; left > 0; ) left -= writeSync(file, zeros, 0, Math.min(left, zeros.length))
  } finally {
    closeSync(file)
  }
}

/** Bytes that are free on the disk of a file. */
export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}
