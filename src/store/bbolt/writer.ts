/**
 * Builds a bbolt database from sorted entries (L2, pure): pages come out in the order in which they stand in the file, so that memory holds one page of each
 * level of a tree. The first three pages, which name the others, are known at the end. Upstream: go.etcd.io/bbolt node.go, db.go (v1.4).
 */
import { bucketFlag, bucketHeadBytes, elementBytes, metaPage, pageFlags, pageHeadBytes, writeId, writePageHead } from './format.ts'

/** Size of a page, as bbolt chooses it on most machines. */
export const pageBytes = 4096
/** A leaf takes several pages in a row: with one page each, objects of more than half a page would leave the rest of it empty. */
const leafBytes = 4 * pageBytes
/** Two meta pages and the freelist. */
export const firstPages = 3
/** Upstream: MaxKeySize. */
const maxKeyBytes = 32_768
/** Upstream: MaxValueSize. */
const maxValueBytes = 2 ** 31 - 2

/** Takes the pages after the first ones, in order. The bytes belong to the caller then. */
export type PageOutput = (pages: Buffer) => void

export class DatabaseWriter {
  readonly #output: PageOutput
  #nextPage = firstPages
  #last: BucketWriter | undefined
  readonly #buckets: { readonly name: Uint8Array; readonly writer: BucketWriter }[] = []

  constructor(output: PageOutput) {
    this.#output = output
  }

  /** Begins a bucket and ends the one before. @param name after the names of the buckets before, by byte */
  bucket(name: Uint8Array): BucketWriter {
    this.#last?.end()
    const writer = new BucketWriter((build) => this.#append(build))
    this.#last = writer
    this.#buckets.push({ name, writer })
    return writer
  }

  /** Ends the file. @returns its first pages, and how many pages it has */
  end(): { readonly head: Buffer; readonly pages: number } {
    this.#last?.end()
    const root = new BucketWriter((build) => this.#append(build), bucketFlag)
    for (const { name, writer } of this.#buckets) {
      const bucket = Buffer.alloc(bucketHeadBytes)
      writeId(bucket, writer.end(), 0)
      root.add(name, bucket)
    }
    const meta = { pageBytes, root: root.end(), freelist: 2, pages: this.#nextPage }
    const freelist = Buffer.alloc(pageBytes)
    writePageHead(freelist, { id: 2, flags: pageFlags.freelist, count: 0, overflow: 0 })
    return { head: Buffer.concat([metaPage({ ...meta, transaction: 0 }), metaPage({ ...meta, transaction: 1 }), freelist]), pages: this.#nextPage }
  }

  #append(build: (id: number) => Buffer): number {
    const id = this.#nextPage
    const page = build(id)
    this.#nextPage += page.length / pageBytes
    this.#output(page)
    return id
  }
}

interface Element {
  readonly key: Uint8Array
  /** Set in a leaf. */
  readonly value?: Uint8Array | undefined
  /** Number of the child's page, set in a branch. */
  readonly child?: number | undefined
}

interface Level {
  elements: Element[]
  bytes: number
}

/** One tree, from its leaves up: `levels[0]` is the leaf that is filled now. */
export class BucketWriter {
  readonly #append: (build: (id: number) => Buffer) => number
  readonly #flags: number
  readonly #levels: Level[] = [{ elements: [], bytes: pageHeadBytes }]
  #lastKey: Uint8Array | undefined
  #root: number | undefined

  constructor(append: (build: (id: number) => Buffer) => number, flags = 0) {
    this.#append = append
    this.#flags = flags
  }

  /** @param key after the keys before, by byte; key and value must not change until the page is written. @throws RangeError */
  add(key: Uint8Array, value: Uint8Array): void {
    if (key.length === 0 || key.length > maxKeyBytes || value.length > maxValueBytes)
      throw new RangeError(`a key of ${key.length} bytes with a value of ${value.length} does not fit into a bucket`)
    if (this.#lastKey && Buffer.compare(this.#lastKey, key) >= 0) throw new RangeError('the keys of a bucket must be added in order')
    this.#lastKey = key
    this.#put(0, { key, value })
  }

  /** Writes what is left. @returns the number of the root page */
  end(): number {
    this.#root ??= this.#endLevels()
    return this.#root
  }

  #put(at: number, element: Element): void {
    this.#levels[at] ??= { elements: [], bytes: pageHeadBytes }
    const level = this.#levels[at]
    const bytes = elementBytes + element.key.length + (element.value?.length ?? 0)
    const limit = at === 0 ? leafBytes : pageBytes
    // A branch with one child would not make the level above it any smaller, however long the keys are.
    const fewest = at === 0 ? 1 : 2
    if (level.elements.length >= fewest && level.bytes + bytes > limit) this.#flush(at)
    level.elements.push(element)
    level.bytes += bytes
  }

  /** Writes the page of a level, which is empty then. @returns the page's number */
  #write(at: number): number {
    const level = this.#levels[at] as Level
    const { elements, bytes } = level
    level.elements = []
    level.bytes = pageHeadBytes
    return this.#append((id) => encodePage(id, at === 0 ? pageFlags.leaf : pageFlags.branch, elements, bytes, this.#flags))
  }

  /** Writes the page of a level, and puts it under the level above, by its first key. */
  #flush(at: number): void {
    const [first] = (this.#levels[at] as Level).elements
    const { key } = first as Element
    this.#put(at + 1, { key, child: this.#write(at) })
  }

  #endLevels(): number {
    for (let at = 0; ; at++) {
      const isTop = at === this.#levels.length - 1
      const { elements } = this.#levels[at] as Level
      const [only] = elements
      if (isTop && at > 0 && elements.length === 1) return only?.child as number
      if (isTop) return this.#write(at)
      if (elements.length > 0) this.#flush(at)
    }
  }
}

function encodePage(id: number, flags: number, elements: readonly Element[], bytes: number, elementFlags: number): Buffer {
  const overflow = Math.ceil(bytes / pageBytes) - 1
  const page = Buffer.allocUnsafeSlow((overflow + 1) * pageBytes)
  writePageHead(page, { id, flags, count: elements.length, overflow })
  let at = pageHeadBytes
  let data = pageHeadBytes + elements.length * elementBytes
  for (const { key, value, child } of elements) {
    if (child === undefined) {
      page.writeUInt32LE(elementFlags, at)
      page.writeUInt32LE(data - at, at + 4)
      page.writeUInt32LE(key.length, at + 8)
      page.writeUInt32LE(value?.length ?? 0, at + 12)
    } else {
      page.writeUInt32LE(data - at, at)
      page.writeUInt32LE(key.length, at + 4)
      writeId(page, child, at + 8)
    }
    page.set(key, data)
    data += key.length
    if (value) {
      page.set(value, data)
      data += value.length
    }
    at += elementBytes
  }
  page.fill(0, data)
  return page
}
