/** Whether this version can read a file of the embedded store (L2): LMDB itself ends the process on a file that is none of its own. */
import { closeSync, openSync, readSync } from 'node:fs'
import type { BackendChange } from '../backend.ts'

/**
 * The newest data format. This version reads all formats up to it.
 * 1: the file names no format. 2: lease ids with 64 bits, in the journal and in records. 3: users and roles.
 */
export const newestFormat = 3

/** The format that a file with these changes needs. A file without users and roles stays readable for versions that know none. */
export function formatFor(changes: readonly { readonly type: BackendChange['type'] }[]): number {
  return changes.some(({ type }) => type === 'auth') ? newestFormat : 2
}

/** @throws Error when a newer version wrote the data */
export function checkFormat(path: string, format = 1): void {
  if (format <= newestFormat) return
  throw new Error(
    `the store ${path} has the data format ${format}, and this version of Skiff reads formats up to ${newestFormat}: open it with the version that wrote it, or a newer one`,
  )
}

/** LMDB's magic number in its first page. */
const magic = 0xbeefc0de
const magicAt = 24

/** An empty file is a new one. @throws Error */
export function checkIsLmdb(path: string): void {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(magicAt + 4)
    const length = readSync(file, head, 0, head.length, 0)
    if (length === 0 || head.readUInt32LE(magicAt) === magic) return
  } finally {
    closeSync(file)
  }
  throw new Error(`${path} is no store of Skiff, or its beginning is damaged: put it back from a copy, or restore a snapshot`)
}
