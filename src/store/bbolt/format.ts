/**
 * The parts of a bbolt database file (L2, pure): pages with a head of 16 bytes, two meta pages that name the root and the free pages, and the elements of
 * branch and leaf pages. All numbers are little endian. Upstream: go.etcd.io/bbolt internal/common (v1.4).
 */

export const pageHeadBytes = 16
/** Length of an element's head, in branch and leaf pages alike. */
export const elementBytes = 16
/** Length of a bucket's head: the number of its root page, and a sequence that etcd leaves at 0. */
export const bucketHeadBytes = 16

export const pageFlags = { branch: 0x01, leaf: 0x02, meta: 0x04, freelist: 0x10 } as const
/** Flag of a leaf element whose value is a bucket. */
export const bucketFlag = 0x01

/** The number of the freelist's page in a file that keeps none. */
export const noFreelist = 2n ** 64n - 1n
/** A freelist with at least this many pages has its length in its first element. */
export const longFreelist = 0xffff

const magic = 0xed0cdaed
const version = 2
const metaBytes = 64
const checksumAt = 56

export interface PageHead {
  readonly id: number
  readonly flags: number
  readonly count: number
  /** Pages that follow and belong to this one. */
  readonly overflow: number
}

export interface Meta {
  readonly pageBytes: number
  /** Page of the tree of buckets. */
  readonly root: number
  /** Undefined: the file keeps no freelist. */
  readonly freelist: number | undefined
  /** Number of pages in the file. */
  readonly pages: number
  readonly transaction: number
}

/** Page numbers stay far below 2^53: a file would have 36 exabytes. */
export const readId = (bytes: Buffer, at: number): number => Number(bytes.readBigUInt64LE(at))
export const writeId = (bytes: Buffer, id: number, at: number): void => void bytes.writeBigUInt64LE(BigInt(id), at)

export function writePageHead(page: Buffer, { id, flags, count, overflow }: PageHead): void {
  writeId(page, id, 0)
  page.writeUInt16LE(flags, 8)
  page.writeUInt16LE(count, 10)
  page.writeUInt32LE(overflow, 12)
}

export function readPageHead(page: Buffer): PageHead {
  return { id: readId(page, 0), flags: page.readUInt16LE(8), count: page.readUInt16LE(10), overflow: page.readUInt32LE(12) }
}

/** The meta page of a transaction; of two, the one with the newer valid transaction counts. */
export function metaPage({ pageBytes, root, freelist, pages, transaction }: Meta): Buffer {
  const page = Buffer.alloc(pageBytes)
  writePageHead(page, { id: transaction % 2, flags: pageFlags.meta, count: 0, overflow: 0 })
  const meta = page.subarray(pageHeadBytes, pageHeadBytes + metaBytes)
  meta.writeUInt32LE(magic, 0)
  meta.writeUInt32LE(version, 4)
  meta.writeUInt32LE(pageBytes, 8)
  writeId(meta, root, 16)
  meta.writeBigUInt64LE(freelist === undefined ? noFreelist : BigInt(freelist), 32)
  writeId(meta, pages, 40)
  writeId(meta, transaction, 48)
  meta.writeBigUInt64LE(fnv64a(meta.subarray(0, checksumAt)), checksumAt)
  return page
}

/** @param page the beginning of a page; undefined when it is no meta page of this format, or is damaged */
export function readMeta(page: Buffer): Meta | undefined {
  if (page.length < pageHeadBytes + metaBytes) return undefined
  const meta = page.subarray(pageHeadBytes, pageHeadBytes + metaBytes)
  if (meta.readUInt32LE(0) !== magic || meta.readUInt32LE(4) !== version) return undefined
  if (meta.readBigUInt64LE(checksumAt) !== fnv64a(meta.subarray(0, checksumAt))) return undefined
  const freelist = meta.readBigUInt64LE(32)
  return {
    pageBytes: meta.readUInt32LE(8),
    root: readId(meta, 16),
    freelist: freelist === noFreelist ? undefined : Number(freelist),
    pages: readId(meta, 40),
    transaction: readId(meta, 48),
  }
}

/** FNV-1a with 64 bits, which protects a meta page. */
function fnv64a(bytes: Uint8Array): bigint {
  let state = 0xcbf29ce484222325n
  for (const byte of bytes) state = BigInt.asUintN(64, (state ^ BigInt(byte)) * 0x100000001b3n)
  return state
}
