/** ETC-11: databases in bbolt's format: what is written is read, and a damaged file is refused by the page with the damage. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metaPage, pageFlags, readMeta, writeId, writePageHead } from './format.ts'
import { DamagedDatabase, openDatabase, type PageSource } from './reader.ts'
import { DatabaseWriter, pageBytes } from './writer.ts'

type Content = Readonly<Record<string, readonly (readonly [key: string, value: string])[]>>

function sourceOf(file: Buffer): PageSource {
  return { length: file.length, read: (position, length) => Buffer.from(file.subarray(position, position + length)) }
}

function write(content: Content): Buffer {
  const pages: Buffer[] = []
  const writer = new DatabaseWriter((page) => pages.push(page))
  for (const name of Object.keys(content).sort()) {
    const bucket = writer.bucket(Buffer.from(name))
    for (const [key, value] of content[name] ?? []) bucket.add(Buffer.from(key), Buffer.from(value))
  }
  const { head, pages: count } = writer.end()
  const file = Buffer.concat([head, ...pages])
  assert.equal(file.length, count * pageBytes)
  return file
}

function read(file: Buffer): Content {
  const database = openDatabase(sourceOf(file))
  const content: Record<string, [string, string][]> = {}
  for (const { name, entries } of database.buckets()) content[name] = [...entries].map(({ key, value }) => [key.toString(), value.toString()])
  database.checkAllReached()
  return content
}

const many = (count: number, value: (index: number) => string): [string, string][] =>
  Array.from({ length: count }, (_, index) => [`key-${String(index).padStart(8, '0')}`, value(index)])

const contents: readonly { readonly name: string; readonly content: Content }[] = [
  { name: 'no buckets', content: {} },
  { name: 'empty buckets', content: { alarm: [], key: [], meta: [] } },
  {
    name: 'a few entries',
    content: {
      key: [
        ['a', '1'],
        ['b', ''],
      ],
      meta: [['x', 'y']],
    },
  },
  { name: 'several levels of pages', content: { key: many(40_000, (index) => `value ${index}`), lease: many(300, () => 'l') } },
  { name: 'values longer than a page', content: { key: many(30, (index) => 'v'.repeat(index * 1500)) } },
  {
    name: 'long keys',
    content: {
      key: [
        ['a'.repeat(5000), '1'],
        ['b'.repeat(32_768), '2'],
        ['c', '3'],
      ],
    },
  },
]

for (const { name, content } of contents)
  test(`ETC-11 a database with ${name} is read as it was written`, () => assert.deepEqual(read(write(content)), content))

test('ETC-11 a writer refuses keys that are not in order, and empty ones', () => {
  const bucket = new DatabaseWriter(() => {}).bucket(Buffer.from('key'))
  bucket.add(Buffer.from('b'), Buffer.alloc(0))
  for (const key of ['a', 'b', '']) assert.throws(() => bucket.add(Buffer.from(key), Buffer.alloc(0)), RangeError)
})

/** As bbolt writes a small bucket: its page stands in the entry of the bucket. Page 4 is free, and the older meta page leads to it. */
function inlineBucketFile(): Buffer {
  const page = Buffer.alloc(pageBytes)
  writePageHead(page, { id: 3, flags: pageFlags.leaf, count: 1, overflow: 0 })
  const inline = Buffer.alloc(16 + 16 + 16 + 2)
  writePageHead(inline.subarray(16), { id: 0, flags: pageFlags.leaf, count: 1, overflow: 0 })
  for (const [value, at] of [
    [0, 0],
    [16, 4],
    [1, 8],
    [1, 12],
  ] as const)
    inline.writeUInt32LE(value, 32 + at)
  inline.write('a1', 48)
  for (const [value, at] of [
    [1, 0],
    [16, 4],
    [3, 8],
    [inline.length, 12],
  ] as const)
    page.writeUInt32LE(value, 16 + at)
  page.write('key', 32)
  inline.copy(page, 35)
  const freelist = Buffer.alloc(pageBytes)
  writePageHead(freelist, { id: 2, flags: pageFlags.freelist, count: 1, overflow: 0 })
  writeId(freelist, 4, 16)
  const meta = { pageBytes, root: 3, freelist: 2, pages: 5 }
  return Buffer.concat([metaPage({ ...meta, transaction: 2 }), metaPage({ ...meta, root: 4, transaction: 1 }), freelist, page, Buffer.alloc(pageBytes)])
}

test('ETC-11 a bucket inside of the page of the root is read, free pages are skipped, and the newer meta page counts', () => {
  assert.deepEqual(read(inlineBucketFile()), { key: [['a', '1']] })
})

test('ETC-11 a file whose first meta page is damaged is read by its second one', () => {
  const file = write({ key: [['a', '1']] })
  file.fill(0xff, 16, 60)
  assert.equal(readMeta(file), undefined)
  assert.deepEqual(read(file), { key: [['a', '1']] })
})

const damages: readonly { readonly name: string; readonly damage: (file: Buffer) => Buffer; readonly message: RegExp }[] = [
  { name: 'that is text', damage: () => Buffer.from('apiVersion: v1\n'), message: /no bbolt database/ },
  { name: 'that is empty', damage: () => Buffer.alloc(0), message: /no bbolt database/ },
  { name: 'that is cut off', damage: (file) => file.subarray(0, file.length - pageBytes), message: /cut off: its \d+ pages need \d+ bytes, and it has \d+/ },
  { name: 'with a page of another number', damage: edit(7, (page) => writeId(page, 9, 0)), message: /^page 7: it says to be page 9$/ },
  { name: 'with a page of unknown flags', damage: edit(7, (page) => page.writeUInt16LE(0x20, 8)), message: /^page 7: it has the flags 32/ },
  { name: 'with a page that claims others', damage: edit(7, (page) => page.writeUInt32LE(2 ** 31, 12)), message: /^page 7: it claims 2147483648 more pages$/ },
  { name: 'with more elements than fit', damage: edit(7, (page) => page.writeUInt16LE(60_000, 10)), message: /^page 7: / },
  {
    name: 'with a key outside of its page',
    damage: edit(7, (page) => page.writeUInt32LE(2 ** 31, 16 + 8)),
    message: /^page 7: what it refers to lies outside/,
  },
  {
    name: 'with keys out of order',
    damage: (file) => {
      const head = 7 * pageBytes + 32
      file.write('a', head + file.readUInt32LE(head + 4))
      return file
    },
    message: /^page 7: the key of its element \d+ is not in order$/,
  },
  {
    name: 'with two elements that share a value',
    damage: edit(7, (page) => page.writeUInt32LE(page.readUInt32LE(16 + 12) + 4, 16 + 12)),
    message: /^page 7: its element 1 begins within another one$/,
  },
  {
    name: 'with an element within the heads of others',
    damage: edit(7, (page) => page.writeUInt32LE(16, 16 + 4)),
    message: /^page 7: its element 0 begins within another one$/,
  },
  {
    name: 'with a page in use that is free',
    damage: edit(2, (page) => listFree(page, 1, 7)),
    message: /^page 7: it is in use, and listed as free$/,
  },
  { name: 'with a freelist of other pages', damage: edit(2, (page) => listFree(page, 1, 1)), message: /^page 2: it lists page 1/ },
  { name: 'with a freelist that is too long', damage: edit(2, (page) => listFree(page, 0xffff, 2 ** 40)), message: /^page 2: / },
]

function listFree(freelist: Buffer, count: number, first: number): void {
  freelist.writeUInt16LE(count, 10)
  writeId(freelist, first, 16)
}

function edit(page: number, change: (page: Buffer) => void): (file: Buffer) => Buffer {
  return (file) => {
    change(file.subarray(page * pageBytes, (page + 1) * pageBytes))
    return file
  }
}

for (const { name, damage, message } of damages) {
  test(`ETC-11 a file ${name} is refused`, () => {
    const file = damage(write({ key: many(2000, () => 'value') }))
    assert.throws(
      () => read(file),
      (error: Error) => error instanceof DamagedDatabase && message.test(error.message),
    )
  })
}

test('ETC-11 a branch that leads to itself is refused', () => {
  const file = write({ key: many(2000, () => 'value') })
  // The root of the bucket stands before the root of the file.
  const root = openDatabase(sourceOf(file)).pages - 2
  writeId(file, root, root * pageBytes + 16 + 8)
  assert.throws(() => read(file), /two places refer to it/)
})

test('ETC-11 every file with one changed byte is refused or read, and nothing else is thrown', () => {
  const whole = write({ key: many(100, (index) => `${index}`), meta: [['a', 'b']] })
  for (let at = 0; at < whole.length; at += 29) {
    const file = Buffer.from(whole)
    file[at] = (file[at] as number) ^ 0x81
    try {
      read(file)
    } catch (error) {
      assert.ok(error instanceof DamagedDatabase, `byte ${at}: ${error}`)
    }
  }
})

/** A file with one value of 20 pages, which are meta pages of a newer transaction: they stand where files with longer pages have their second meta page. */
function forgedFile(): { readonly file: Buffer; readonly value: string } {
  const forged = metaPage({ pageBytes: 16_384, root: 3, freelist: undefined, pages: 4, transaction: 1000 }).subarray(0, pageBytes)
  // Behind the heads of the page and its element, and the key: the next page begins with a whole one.
  const headBytes = 16 + 16 + 1
  const value = Buffer.concat([Buffer.alloc(pageBytes - headBytes), ...Array.from({ length: 20 }, () => forged)]).toString('latin1')
  const pages: Buffer[] = []
  const writer = new DatabaseWriter((page) => pages.push(page))
  writer.bucket(Buffer.from('key')).add(Buffer.from('a'), Buffer.from(value, 'latin1'))
  const { head } = writer.end()
  const file = Buffer.concat([head, ...pages])
  assert.ok(readMeta(file.subarray(16_384))?.transaction === 1000)
  return { file, value }
}

test('ETC-11 a value that looks like a newer meta page is not taken for one', () => {
  const { file, value } = forgedFile()
  const [bucket] = openDatabase(sourceOf(file)).buckets()
  assert.deepEqual(
    [...(bucket?.entries ?? [])].map((entry) => entry.value.toString('latin1')),
    [value],
  )
})
