import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { storeError } from '../../storeError.ts'
import type { BackendChange } from '../backend.ts'
import { Journal } from './journal.ts'
import { type CheckpointedBackend, decodeChanges, journaledBackend } from './journaledBackend.ts'

const folder = mkdtempSync(join(tmpdir(), 'skiff-journal-'))
after(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `${files++}`)
const clock = new VirtualClock()
const segmentBytes = 4096
const open = (path: string, identity = 7) => new Journal({ path, identity, segmentBytes, clock })
const read = (path: string, number: number, identity?: number) => {
  const journal = open(path, identity)
  try {
    return journal.after(number).map(({ number: found, payload }) => [found, payload.toString()])
  } finally {
    journal.close()
  }
}

async function written(path: string, texts: readonly string[]): Promise<void> {
  const journal = open(path)
  for (const text of texts) await journal.append(Buffer.from(text))
  journal.close()
}

test('ETC-10 what was written is read again, in order, after the number that is asked for', async () => {
  const path = newPath()
  await written(path, ['a', 'b', 'c'])
  assert.deepEqual(read(path, 0), [
    [1, 'a'],
    [2, 'b'],
    [3, 'c'],
  ])
  assert.deepEqual(read(path, 2), [[3, 'c']])
  assert.deepEqual(read(path, 3), [])
})

test('ETC-10 a write that was cut off is no entry, wherever it was cut', async () => {
  const path = newPath()
  await written(path, ['first', 'second'])
  const whole = readFileSync(path)
  const end = 2 * 16 + 'firstsecond'.length
  for (let cut = 16 + 'first'.length; cut < end; cut++) {
    writeFileSync(path, Buffer.concat([whole.subarray(0, cut), Buffer.alloc(whole.length - cut)]))
    assert.deepEqual(read(path, 0), [[1, 'first']], `cut at ${cut}`)
  }
})

test('a journal of another store holds nothing for this one', async () => {
  const path = newPath()
  await written(path, ['a'])
  assert.deepEqual(read(path, 0, 8), [])
})

test('entries of earlier rounds through the segments are not read', async () => {
  const path = newPath()
  const journal = open(path)
  const long = 'x'.repeat(1500)
  for (let round = 0; round < 5; round++) {
    while (journal.fits(Buffer.from(long))) await journal.append(Buffer.from(long))
    journal.turn()
  }
  const last = await journal.append(Buffer.from('last'))
  journal.close()
  assert.deepEqual(
    read(path, last - 3).map(([number]) => number),
    [last - 2, last - 1, last],
  )
  assert.deepEqual(read(path, last), [])
})

/** Keeps what it was given, as a database would: what is durable is what a crash leaves. */
function memoryBackend() {
  const durable: BackendChange[] = []
  const state = { number: 0, isFull: false }
  const backend: CheckpointedBackend = {
    append: async (changes) => {
      if (state.isFull) throw storeError('noSpace')
      durable.push(...changes)
    },
    checkpoint: async (changes, number) => {
      await new Promise((resolve) => setImmediate(resolve))
      if (state.isFull) throw storeError('noSpace')
      durable.push(...changes.map(({ change }) => change))
      state.number = number
    },
    forget: async () => {},
    load: () => undefined,
    close: async () => {},
  }
  return { backend, durable, state }
}

const lease = (id: number): BackendChange => ({ type: 'grantLease', id, ttlSeconds: 1 })
const put = (revision: number, bytes: number): BackendChange => ({
  type: 'revision',
  revision,
  versions: [{ key: `k${revision}`, modRevision: revision, sub: 0, version: 1, createRevision: revision, lease: 0, bytes, value: new Uint8Array(bytes) }],
})
const nameOf = (change: BackendChange) => ('id' in change ? change.id : change.type === 'revision' ? change.revision : -1)

for (let seed = 1; seed <= 20; seed++) {
  test(`ETC-10 after a crash at any time everything acknowledged is there, once and in order (seed ${seed})`, async () => {
    const random = seededRandom(seed)
    const path = newPath()
    const { backend, durable, state } = memoryBackend()
    let isShort = false
    const journal = open(path)
    const journaled = journaledBackend(backend, journal, { number: 0, last: 0, pending: [], isShortOfSpace: () => isShort, log: noLog })
    let acknowledged = 0
    for (let step = 1; step <= 200; step++) {
      if (random.next() < 0.03) isShort = !isShort
      if (random.next() < 0.03) await journaled.forget([])
      // Now and then longer than a segment.
      const change = random.next() < 0.2 ? lease(step) : put(step, Math.floor(random.next() * (random.next() < 0.05 ? 9000 : 900)))
      await journaled.append([change])
      acknowledged = step
      if (random.next() > 0.1) continue
      // What a crash here would leave: the journal's file and what the backend has.
      const left = newPath()
      copyFileSync(path, left)
      const number = state.number
      const found = open(left)
      const moved = found.after(number).flatMap(({ payload }) => decodeChanges(payload).map(({ change }) => change))
      found.close()
      assert.deepEqual(
        [...durable, ...moved].map(nameOf),
        Array.from({ length: acknowledged }, (_, index) => index + 1),
      )
    }
    await journaled.close()
    assert.deepEqual(
      durable.map(nameOf),
      Array.from({ length: acknowledged }, (_, index) => index + 1),
    )
  })
}

test('ETC-10 a full journal refuses writes while the backend cannot take its entries, loses nothing acknowledged, and accepts writes once there is space', async () => {
  const path = newPath()
  const { backend, durable, state } = memoryBackend()
  const journaled = journaledBackend(backend, open(path), { number: 0, last: 0, pending: [], isShortOfSpace: () => false, log: noLog })
  state.isFull = true
  let acknowledged = 0
  await assert.rejects(
    async () => {
      while (acknowledged < 100) {
        await journaled.append([put(acknowledged + 1, 1000)])
        acknowledged++
      }
    },
    (error: { code?: string }) => error.code === 'noSpace',
  )
  assert.ok(acknowledged > 3, 'both segments were used')
  assert.equal(journaled.load?.((put(2, 0) as BackendChange & { type: 'revision' }).versions[0] as never)?.length, 1000)
  state.isFull = false
  await journaled.append([put(acknowledged + 1, 1000)])
  await journaled.close()
  assert.deepEqual(
    durable.map(nameOf),
    Array.from({ length: acknowledged + 1 }, (_, index) => index + 1),
  )
})

test('a journal that cannot be written any more is left out', async () => {
  const path = newPath()
  const { backend, durable, state } = memoryBackend()
  const journal = open(path)
  const journaled = journaledBackend(backend, journal, { number: 0, last: 0, pending: [], isShortOfSpace: () => false, log: noLog })
  await journaled.append([lease(1)])
  journal.close()
  await journaled.append([lease(2)])
  await journaled.append([lease(3)])
  assert.deepEqual(durable.map(nameOf), [1, 2, 3])
  assert.equal(state.number, 2, 'the entry that may or may not be there is not read again')
})

test('ETC-10 a journal with a change of an unknown kind is refused: its change is no compaction', () => {
  const entry = Buffer.alloc(21)
  for (const kind of [5, 0x85]) {
    entry.writeUInt8(kind, 0)
    assert.throws(() => decodeChanges(entry), /unknown kind \d+: open it with the version of Skiff that wrote it/)
  }
})
