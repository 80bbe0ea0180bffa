import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { CommandError } from '../exitCodes.ts'
import { type OpenBundle, openBundle } from './bundleReader.ts'
import { BundleWriter } from './bundleWriter.ts'
import { type BundleFacts, type BundleIndex, type BundlePart, headBytes, headOf, logPart, magic, mostIndexBytes, mostParts } from './format.ts'

const facts: BundleFacts = {
  cluster: 'lab',
  takenMs: 1_000,
  revision: 20,
  oldestRevision: 10,
  isRedacted: true,
  skiffVersion: '0.1.0',
  serverVersion: 'v1.36.3',
  objects: 2,
  changes: 3,
  missing: [{ what: 'objects of secrets', reason: 'forbidden' }],
}

async function opening(bytes: Uint8Array): Promise<OpenBundle> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-bundle-'))
  try {
    await fs.writeFile(path.join(folder, 'opened'), bytes)
    return await openBundle(path.join(folder, 'opened'))
  } finally {
    await fs.rm(folder, { recursive: true })
  }
}

async function reading(bytes: Uint8Array, part = 'traces.json'): Promise<Buffer> {
  const bundle = await opening(bytes)
  return bundle.read(part).finally(bundle.close)
}

const refused = (work: Promise<unknown>, message: RegExp) =>
  assert.rejects(work, (error: unknown) => error instanceof CommandError && message.test(error.message))

describe('a bundle', () => {
  let folder: string
  let written: Buffer
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-bundle-'))
    const writer = new BundleWriter(folder)
    await writer.add('traces.json', '{"requests":[]}')
    await writer.add(logPart('shop', 'web-1', 'main', true), 'hello\n'.repeat(1_000))
    const handle = await fs.open(path.join(folder, 'written'), 'w+')
    await writer.finish(handle, facts)
    await handle.close()
    written = await fs.readFile(path.join(folder, 'written'))
  })
  after(() => fs.rm(folder, { recursive: true }))

  test('X18 a bundle gives the facts and the parts that were written', async () => {
    const bundle = await opening(written)
    const { parts, ...found } = bundle.index
    assert.deepEqual(found, facts)
    assert.deepEqual(
      parts.map(({ name, bytes }) => [name, bytes]),
      [
        ['traces.json', 15],
        ['logs/pods/shop/web-1/main.previous.log', 6_000],
      ],
    )
    assert.equal((await bundle.read('logs/pods/shop/web-1/main.previous.log')).toString(), 'hello\n'.repeat(1_000))
    await refused(bundle.read('store.db'), /has no part store\.db/)
    await bundle.close()
  })

  test('X18 a part that repeats itself is written so that it can be read', async () => {
    const writer = new BundleWriter(folder)
    const log = 'the same line\n'.repeat(300_000)
    await writer.add('logs/skiff/server.log', log)
    const file = path.join(folder, 'repeating')
    const handle = await fs.open(file, 'w+')
    await writer.finish(handle, facts)
    await handle.close()
    const bundle = await openBundle(file)
    assert.equal((await bundle.read('logs/skiff/server.log')).toString(), log)
    await bundle.close()
  })

  test('X18 a truncated bundle is refused, wherever it ends', async () => {
    for (let length = 0; length < written.length; length += 7) await refused(opening(written.subarray(0, length)), /no bundle, or a damaged one/)
  })

  test('X18 a bundle with one changed byte is refused', async () => {
    for (let at = 0; at < written.length; at++) {
      const changed = Buffer.from(written)
      changed[at] = (changed[at] as number) ^ 0x55
      const parts = ['traces.json', logPart('shop', 'web-1', 'main', true)]
      const outcome = await Promise.all(parts.map((part) => reading(changed, part))).catch((error: unknown) => error)
      assert.ok(outcome instanceof CommandError, `byte ${at}`)
    }
  })

  test('X18 a bundle with bytes behind its end is refused', () => refused(opening(Buffer.concat([written, Buffer.from('x')])), /should take/))

  test('X18 a bundle of another version names it', () =>
    refused(opening(Buffer.concat([Buffer.from('SKIFF BUNDLE 7\n\0'), written.subarray(magic.length)])), /version 7 of the format/))

  test('X18 an index longer than its bound is not read', async () => {
    const head = Buffer.from(written.subarray(0, headBytes))
    head.writeUInt32BE(mostIndexBytes + 1, magic.length)
    await refused(opening(head), /its index has \d+ bytes/)
  })
})

describe('a crafted bundle', () => {
  const content = gzipSync('{}')
  const part = { name: 'a', bytes: 2, packedBytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }
  const crafted = (changes: Partial<BundleIndex>, behind: Uint8Array = content) => {
    const index = Buffer.from(JSON.stringify({ ...facts, parts: [part], ...changes }))
    return Buffer.concat([headOf(index, createHash('sha256').update(index).digest()), index, behind])
  }
  const withPart = (changes: Partial<BundlePart>, behind?: Uint8Array) => crafted({ parts: [{ ...part, ...changes }] }, behind)

  test('X18 a part that unpacks to more than it announces is refused', () => refused(reading(withPart({ bytes: 1 }), 'a'), /cannot be unpacked|instead of/))

  test('X18 a part that announces more than its packed bytes can hold is refused', () => refused(opening(withPart({ bytes: 50 * 2 ** 20 })), /would grow/))

  test('X18 a decompression bomb is refused before it is unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(40 * 2 ** 20))
    const sha256 = createHash('sha256').update(bomb).digest('hex')
    await refused(opening(withPart({ bytes: 40 * 2 ** 20, packedBytes: bomb.length, sha256 }, bomb)), /would grow/)
    await refused(reading(withPart({ bytes: 2 ** 20, packedBytes: bomb.length, sha256 }, bomb), 'a'), /cannot be unpacked/)
  })

  for (const [what, changes, message] of [
    ['a part outside of it', { parts: [{ ...part, name: '../../etc/passwd' }] }, /name of a part/],
    ['an absolute part', { parts: [{ ...part, name: '/etc/passwd' }] }, /name of a part/],
    ['a part with markup as its name', { parts: [{ ...part, name: '<img src=x onerror=alert(1)>' }] }, /name of a part/],
    ['a part twice', { parts: [part, part] }, /listed twice/],
    ['a negative length', { parts: [{ ...part, bytes: -1 }] }, /not described/],
    ['too many parts', { parts: Array.from({ length: mostParts + 1 }, () => part) }, /at most 50000 are read/],
    ['parts that are no list', { parts: 'x' as unknown as [] }, /lists no parts/],
    ['an empty part', { parts: [null as unknown as BundlePart] }, /name of a part/],
    ['a time beyond all times', { takenMs: 8.64e15 + 1 }, /its time is no time/],
    ['no revision', { revision: 'x' as unknown as number }, /has no revision/],
    ['a list of missing parts without reasons', { missing: [{}] as never }, /does not list what is missing/],
  ] as const) {
    test(`X18 an index with ${what} is refused`, () => refused(opening(crafted(changes)), message))
  }

  test('X18 a bundle that is no file is refused', async () => {
    await refused(openBundle(os.tmpdir()), /is no file|is a directory/i)
    await refused(openBundle(path.join(os.tmpdir(), 'skiff-bundle-that-is-missing')), /does not exist/)
  })
})
