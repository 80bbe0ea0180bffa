import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { StreamCall } from '#grpc/grpcService'
import { createMemoryStore } from '../drivers/memory.ts'
import type { LocalStore } from '../store.ts'
import { createAlarms } from './alarms.ts'
import { snapshotMethods, snapshotService } from './snapshotMethods.ts'

interface Piece {
  readonly remainingBytes: number
  readonly blob: Buffer
}

let folder = ''
let store: LocalStore
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skiff-sent-'))
  store = createMemoryStore({ clock: new VirtualClock() })
  for (let at = 0; at < 8; at++) await store.transact({ compare: [], success: [{ type: 'put', key: `k${at}`, value: Buffer.alloc(300_000, at) }] })
})
after(async () => {
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

/** A client that reads after `reads` has resolved. */
function callOf(sent: Piece[], reads: Promise<void>): StreamCall<never> {
  return {
    client: { metadata: () => undefined, commonName: () => undefined },
    requests: (async function* () {})(),
    signal: new AbortController().signal,
    send: (message) => void sent.push(message as Piece),
    queuedBytes: 0,
    drained: () => reads,
  }
}

test('ETC-20 a snapshot is sent in pieces with the bytes that are left, and its SHA-256 at the end', async () => {
  const sent: Piece[] = []
  await snapshotService(store, folder).streams?.Snapshot?.(callOf(sent, Promise.resolve()))
  const pieces = sent.slice(0, -1)
  const length = pieces.reduce((sum, { blob }) => sum + blob.length, 0)
  assert.ok(pieces.length > 5 && length > 2_400_000)
  assert.deepEqual([(pieces[0]?.remainingBytes ?? 0) + (pieces[0]?.blob.length ?? 0), pieces.at(-1)?.remainingBytes], [length, 0])
  assert.deepEqual(
    sent.at(-1)?.blob,
    createHash('sha256')
      .update(Buffer.concat(pieces.map(({ blob }) => blob)))
      .digest(),
  )
  assert.deepEqual(await readdir(folder), [])
})

test('ETC-20 clients that do not read get one piece each, a fifth one is refused, and it is served when they have read', async () => {
  let read = () => {}
  const reads = new Promise<void>((resolve) => {
    read = resolve
  })
  const { streams } = snapshotService(store, folder)
  const sent = Array.from({ length: 4 }, (): Piece[] => [])
  const calls = sent.map((one) => streams?.Snapshot?.(callOf(one, reads)))
  await assert.rejects(streams?.Snapshot?.(callOf([], reads)) ?? Promise.resolve(), { code: 'RESOURCE_EXHAUSTED' })
  while (sent.some((one) => one.length === 0)) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([sent.map((one) => one.length), await readdir(folder)], [[1, 1, 1, 1], []])
  read()
  await Promise.all(calls)
  await streams?.Snapshot?.(callOf([], reads))
  // An open snapshot would hold this up.
  await store.compact(store.latestRevision())
})

test('ETC-20 the 17th hash or defragmentation that runs or waits is refused, and is served when the others have ended', async () => {
  const header = () => ({ clusterId: 1, memberId: 2, revision: 0, raftTerm: 1 })
  const { methods } = snapshotMethods({ store, header, alarms: createAlarms(), temporaryFolder: folder })
  const call = async (name: string) => methods[name]?.({ revision: 0 } as never, () => {})
  const running = ['Hash', 'HashKV', 'HashKV', 'Defragment'].flatMap((name) => Array.from({ length: 4 }, () => call(name)))
  for (const name of ['Hash', 'HashKV', 'Defragment']) await assert.rejects(call(name), { code: 'RESOURCE_EXHAUSTED' })
  await Promise.all(running)
  await call('Hash')
})
