import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { snapshotOf } from '#store/drivers/etcd/snapshotStream'
import { createMemoryStore } from '#store/drivers/memory'
import { realClock } from '#testing/realClock'
import { storeSocket } from './storeSocket.ts'

test('ETC-20 the socket of a running cluster gives its owner a snapshot, and is gone when the server has stopped', { timeout: 30_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skiff-socket-'))
  const store = createMemoryStore({ clock: realClock })
  await store.transact({ compare: [], success: [{ type: 'put', key: 'a', value: Buffer.from('1') }] })
  const paths = { storeSocket: join(folder, 'store.sock'), store: folder }
  const stop = new AbortController()
  const running = storeSocket(store, paths, { log: noLog }).run(stop.signal)
  const find = async (): Promise<number> =>
    stat(paths.storeSocket).then(
      ({ mode }) => mode & 0o777,
      () => new Promise((resolve) => setImmediate(() => resolve(find()))),
    )
  while ((await find()) !== 0o600) await new Promise((resolve) => setImmediate(resolve))
  const pieces: Buffer[] = []
  for await (const piece of snapshotOf(`unix:${paths.storeSocket}`, undefined, new AbortController().signal)) pieces.push(piece)
  const file = Buffer.concat(pieces)
  assert.deepEqual(file.subarray(-32), createHash('sha256').update(file.subarray(0, -32)).digest())
  stop.abort()
  await running
  assert.deepEqual(await readdir(folder), [])
  await store.close()
  await rm(folder, { recursive: true })
})
