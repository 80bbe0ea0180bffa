/**
 * Whether this version can read a file of the embedded store (L2). LMDB itself ends the process on a file that is none of its own, and on one that ends before
 * a page that it looks for. Upstream: lmdb's mdb.c MDB_meta.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs'
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

/** LMDB's magic number, and where it stands in the first page. */
const magic = 0xbeefc0de
const magicAt = 24
/** Where the first two pages, of which the newer counts, have the size of the map, that of a page, the last page in use, and the number of their transaction. */
const mapSizeAt = 40
const pageSizeAt = 48
const lastPageAt = 144
const transactionAt = 152

const whatToDo = 'put it back from a copy, or restore a snapshot'

/** An empty file is a new one. A file that ends too early gets pages of zeros, which LMDB reports where it needs them. @throws Error */
export function prepareFile(path: string): void {
  const file = openSync(path, 'r+')
  try {
    const head = pageHead(file, 0)
    if (!head) return
    if (head.readUInt32LE(magicAt) !== magic) throw new Error(`${path} is no store of Skiff, or its beginning is damaged: ${whatToDo}`)
    const pageSize = head.readUInt32LE(pageSizeAt)
    const other = pageHead(file, pageSize) ?? head
    if (other.readUInt32LE(magicAt) !== magic) throw damaged(path, new Error('its second page has no mark of LMDB'))
    const newer = other.readBigUInt64LE(transactionAt) > head.readBigUInt64LE(transactionAt) ? other : head
    const wanted = (Number(newer.readBigUInt64LE(lastPageAt)) + 1) * pageSize
    // Pages beyond the map cannot be: such a number is damage, and the file must not grow to it.
    if (wanted > Number(newer.readBigUInt64LE(mapSizeAt))) throw damaged(path, new Error('its first pages name a last page that cannot be'))
    const { size } = fstatSync(file)
    if (size < wanted) ftruncateSync(file, wanted)
  } finally {
    closeSync(file)
  }
}

/** Undefined when the file has no such page. */
function pageHead(file: number, at: number): Buffer | undefined {
  const head = Buffer.alloc(transactionAt + 8)
  return readSync(file, head, 0, head.length, at) === 0 ? undefined : head
}

/** The error for a store whose content LMDB or the records' layout does not allow. */
export function damaged(path: string, cause: unknown): Error {
  return new Error(`the store ${path} is damaged (${(cause as Error).message}): ${whatToDo}`, { cause })
}

/** MDB_PAGE_NOTFOUND, MDB_CORRUPTED, MDB_PANIC and MDB_INVALID. */
const damageCodes: ReadonlySet<unknown> = new Set([-30797, -30796, -30795, -30793])

export function isDamage(error: unknown): boolean {
  return damageCodes.has((error as { code?: unknown }).code)
}
