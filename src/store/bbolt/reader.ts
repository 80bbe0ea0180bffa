/**
 * Reads a bbolt database (L2, pure), and checks every page on the way: a page must lie in the file, know its own number, and be reached once; keys must ascend.
 * Memory holds the pages from the root to one leaf. Upstream: go.etcd.io/bbolt db.go, tx_check.go (v1.4).
 */
import {
  bucketFlag,
  bucketHeadBytes,
  elementBytes,
  longFreelist,
  type Meta,
  type PageHead,
  pageFlags,
  pageHeadBytes,
  readId,
  readMeta,
  readPageHead,
} from './format.ts'

export interface PageSource {
  /** Bytes of the database. */
  readonly length: number
  /** Exactly these bytes, which do not change later; they lie in the file. */
  read(position: number, length: number): Buffer
}

export interface Entry {
  readonly key: Buffer
  readonly value: Buffer
}

export interface Database {
  readonly pages: number
  readonly pageBytes: number
  /** The buckets by name, in order. Each can be read once. @throws DamagedDatabase */
  buckets(): Iterable<{ readonly name: string; readonly entries: Iterable<Entry> }>
  /** To be called when all buckets were read. @throws DamagedDatabase when a page belongs to none of them and is not free */
  checkAllReached(): void
}

/** A file that is no bbolt database, or a damaged one. */
export class DamagedDatabase extends Error {
  /** The page with the damage. */
  readonly page: number | undefined

  constructor(message: string, page?: number) {
    super(page === undefined ? message : `page ${page}: ${message}`)
    this.name = 'DamagedDatabase'
    this.page = page
  }
}

const pageSizes = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536]
/** Bytes of a page from which its meta can be read. */
const metaPageBytes = 1024
/** A tree of full pages with the smallest elements has far fewer levels. */
const mostLevels = 64
/** Longest page with what follows it. An entry of etcd has a few megabytes at most. */
const maxRunBytes = 64 << 20

/** @throws DamagedDatabase */
export function openDatabase(source: PageSource): Database {
  const meta = newestMeta(source)
  if (meta.pages * meta.pageBytes > source.length)
    throw new DamagedDatabase(`the file is cut off: its ${meta.pages} pages need ${meta.pages * meta.pageBytes} bytes, and it has ${source.length}`)
  return new Reader(source, meta)
}

/**
 * The newer one of the two meta pages. The first one says where the second one is; only where the first one is damaged, each place is tried. Elsewhere a page of
 * a long value may look like a meta page.
 */
function newestMeta(source: PageSource): Meta {
  const first = metaAt(source, 0)
  const places = first ? [first.pageBytes] : pageSizes
  const second = places.map((bytes) => metaAt(source, bytes)).find((meta, index) => meta?.pageBytes === places[index])
  const newest = first && second ? (first.transaction > second.transaction ? first : second) : (first ?? second)
  if (!newest) throw new DamagedDatabase('neither of the two meta pages is valid: this is no bbolt database, or a damaged one')
  if (!pageSizes.includes(newest.pageBytes)) throw new DamagedDatabase(`pages of ${newest.pageBytes} bytes are not supported`)
  return newest
}

function metaAt({ length, read }: PageSource, position: number): Meta | undefined {
  return position < length ? readMeta(read(position, Math.min(metaPageBytes, length - position))) : undefined
}

class Reader implements Database {
  readonly pages: number
  readonly pageBytes: number
  readonly #source: PageSource
  readonly #meta: Meta
  /** One bit a page. */
  readonly #reached: Uint8Array
  readonly #free: Uint8Array

  constructor(source: PageSource, meta: Meta) {
    this.#source = source
    this.#meta = meta
    this.pages = meta.pages
    this.pageBytes = meta.pageBytes
    this.#reached = new Uint8Array(Math.ceil(meta.pages / 8))
    this.#free = new Uint8Array(Math.ceil(meta.pages / 8))
    for (const id of [0, 1]) mark(this.#reached, id)
    this.#readFreelist()
  }

  *buckets(): Generator<{ name: string; entries: Iterable<Entry> }> {
    for (const { key, value, isBucket, page } of this.#tree(this.#meta.root)) {
      if (!isBucket) throw new DamagedDatabase('an entry stands outside of the buckets', page)
      yield { name: key.toString('latin1'), entries: this.#entries(value, page) }
    }
  }

  checkAllReached(): void {
    if (this.#meta.freelist === undefined) return
    for (let id = 0; id < this.pages; id++) {
      if (!isMarked(this.#reached, id) && !isMarked(this.#free, id)) throw new DamagedDatabase('nothing refers to it, and it is not free', id)
    }
  }

  *#entries(bucket: Buffer, page: number): Generator<Entry> {
    if (bucket.length < bucketHeadBytes) throw new DamagedDatabase('a bucket is cut off', page)
    const root = readId(bucket, 0)
    // The page of a small bucket stands in the entry of the bucket itself.
    const leaves = root === 0 ? this.#leaf(bucket.subarray(bucketHeadBytes), page, undefined) : this.#tree(root)
    for (const { key, value, isBucket, page: at } of leaves) {
      if (isBucket) throw new DamagedDatabase('a bucket stands in a bucket, which etcd does not do', at)
      yield { key, value }
    }
  }

  *#tree(id: number, level = 0, from?: Buffer, to?: Buffer): Generator<LeafEntry> {
    if (level > mostLevels) throw new DamagedDatabase(`the tree has more than ${mostLevels} levels`, id)
    const { head, bytes } = this.#page(id)
    if (head.flags === pageFlags.leaf) {
      yield* this.#leaf(bytes, id, from, to)
      return
    }
    const keys = branchKeys(bytes, head.count, id)
    for (const [i, key] of keys.entries()) {
      checkOrder(key, keys[i - 1] ?? from, to, i, id)
      yield* this.#tree(readId(bytes, pageHeadBytes + i * elementBytes + 8), level + 1, key, keys[i + 1] ?? to)
    }
  }

  *#leaf(bytes: Buffer, id: number, from: Buffer | undefined, to?: Buffer): Generator<LeafEntry> {
    if (bytes.length < pageHeadBytes) throw new DamagedDatabase('a page inside is cut off', id)
    const { count, flags } = readPageHead(bytes)
    if (flags !== pageFlags.leaf) throw new DamagedDatabase(`it has the flags ${flags}, which no leaf has`, id)
    let before = from
    let end = pageHeadBytes + count * elementBytes
    for (let i = 0; i < count; i++) {
      const at = elementAt(bytes, i, id)
      const start = at + bytes.readUInt32LE(at + 4)
      const keyEnd = start + bytes.readUInt32LE(at + 8)
      checkPlace(start, end, i, id)
      end = keyEnd + bytes.readUInt32LE(at + 12)
      const key = piece(bytes, start, keyEnd - start, id)
      checkOrder(key, before, to, i, id)
      before = key
      yield { key, value: piece(bytes, keyEnd, end - keyEnd, id), isBucket: (bytes.readUInt32LE(at) & bucketFlag) !== 0, page: id }
    }
  }

  /** A branch or leaf page with what follows it. */
  #page(id: number): { readonly head: PageHead; readonly bytes: Buffer } {
    const { head, bytes } = this.#run(id)
    if (head.flags !== pageFlags.branch && head.flags !== pageFlags.leaf)
      throw new DamagedDatabase(`it has the flags ${head.flags}, which no branch or leaf has`, id)
    if (isMarked(this.#free, id)) throw new DamagedDatabase('it is in use, and listed as free', id)
    return { head, bytes }
  }

  #run(id: number): { readonly head: PageHead; readonly bytes: Buffer } {
    if (id < 2 || id >= this.pages) throw new DamagedDatabase(`it is none of the ${this.pages} pages of the file`, id)
    const first = this.#source.read(id * this.pageBytes, this.pageBytes)
    const head = readPageHead(first)
    if (head.id !== id) throw new DamagedDatabase(`it says to be page ${head.id}`, id)
    const bytes = (head.overflow + 1) * this.pageBytes
    if (id + head.overflow >= this.pages || bytes > maxRunBytes) throw new DamagedDatabase(`it claims ${head.overflow} more pages`, id)
    for (let part = id; part <= id + head.overflow; part++) {
      if (isMarked(this.#reached, part)) throw new DamagedDatabase('two places refer to it', part)
      mark(this.#reached, part)
    }
    return { head, bytes: head.overflow === 0 ? first : this.#source.read(id * this.pageBytes, bytes) }
  }

  #readFreelist(): void {
    const { freelist } = this.#meta
    if (freelist === undefined) return
    const { head, bytes } = this.#run(freelist)
    if (head.flags !== pageFlags.freelist) throw new DamagedDatabase(`it has the flags ${head.flags}, which no freelist has`, freelist)
    const isLong = head.count === longFreelist
    const count = isLong ? readId(piece(bytes, pageHeadBytes, 8, freelist), 0) : head.count
    const list = piece(bytes, pageHeadBytes + (isLong ? 8 : 0), count * 8, freelist)
    for (let at = 0; at < list.length; at += 8) {
      const id = readId(list, at)
      if (id < 2 || id >= this.pages || isMarked(this.#free, id))
        throw new DamagedDatabase(`it lists page ${id}, which is free already or is no page`, freelist)
      mark(this.#free, id)
    }
  }
}

interface LeafEntry extends Entry {
  readonly isBucket: boolean
  /** The page that it stands in. */
  readonly page: number
}

/** Where an element's head begins. */
function elementAt(bytes: Buffer, index: number, id: number): number {
  const at = pageHeadBytes + index * elementBytes
  if (at + elementBytes > bytes.length) throw new DamagedDatabase(`its element ${index} lies outside of it`, id)
  return at
}

function branchKeys(bytes: Buffer, count: number, id: number): Buffer[] {
  const keys: Buffer[] = []
  let end = pageHeadBytes + count * elementBytes
  for (let i = 0; i < count; i++) {
    const at = elementAt(bytes, i, id)
    const start = at + bytes.readUInt32LE(at)
    checkPlace(start, end, i, id)
    const key = piece(bytes, start, bytes.readUInt32LE(at + 4), id)
    end = start + key.length
    keys.push(key)
  }
  return keys
}

/** What an element refers to begins behind what the elements before refer to, so that all together are no longer than the page. */
function checkPlace(start: number, end: number, index: number, id: number): void {
  if (start < end) throw new DamagedDatabase(`its element ${index} begins within another one`, id)
}

function piece(bytes: Buffer, at: number, length: number, id: number): Buffer {
  if (at + length > bytes.length) throw new DamagedDatabase('what it refers to lies outside of it', id)
  return bytes.subarray(at, at + length)
}

/** The first key of a page may equal the one that leads to it. */
function checkOrder(key: Buffer, before: Buffer | undefined, to: Buffer | undefined, index: number, id: number): void {
  const order = before ? Buffer.compare(before, key) : -1
  if (key.length === 0 || order > 0 || (order === 0 && index > 0) || (to && Buffer.compare(key, to) >= 0))
    throw new DamagedDatabase(`the key of its element ${index} is not in order`, id)
}

function mark(bits: Uint8Array, id: number): void {
  bits[id >> 3] = (bits[id >> 3] as number) | (1 << (id & 7))
}

function isMarked(bits: Uint8Array, id: number): boolean {
  return ((bits[id >> 3] as number) & (1 << (id & 7))) !== 0
}
