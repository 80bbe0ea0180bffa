/** Fills the disk under an embedded store, and reports what still works: one JSON object on stdout. Runs where storeFull.test.ts mounted a small disk. */
import { closeSync, copyFileSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { noLog } from '#base/log'
import { openLmdbStore } from '#store/drivers/lmdb'
import type { LocalStore } from '#store/store'
import { isStoreError } from '#store/storeError'
import { realClock } from '#testing/realClock'

const path = process.argv[2] ?? ''
const open = (file: string) => openLmdbStore({ path: file, clock: realClock, log: noLog })
const put = (store: LocalStore, key: string, bytes = 100_000) =>
  store.transact({ compare: [], success: [{ type: 'put', key, value: new Uint8Array(bytes).fill(1) }] })
const user = (key: string) => ({ bucket: 'authUsers', key, value: new Uint8Array(110_000) }) as const
const authRevision = (number: number) => ({ bucket: 'auth', key: 'authRevision', value: new Uint8Array(8).fill(number) }) as const
const count = async (store: LocalStore) => (await store.range('k/', 'k0', { keysOnly: true })).count
const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => (isStoreError(error) ? error.code : String(error)),
  )

const filler = join(dirname(path), 'filler')

/** Takes the last bytes of the disk. */
function fill(): void {
  const file = openSync(filler, 'a')
  for (let size = 1 << 20; size >= 1; ) {
    try {
      writeSync(file, Buffer.alloc(size))
    } catch {
      size >>= 1
    }
  }
  closeSync(file)
}

/** What a crash leaves of the store: its files as they are, without the space that LMDB's has at its end. */
function copyCrashed(): string {
  const folder = join(dirname(path), 'crashed')
  mkdirSync(folder)
  const copy = join(folder, 'store.lmdb')
  const bytes = readFileSync(path)
  const end = bytes.findLastIndex((byte) => byte !== 0)
  writeFileSync(copy, bytes.subarray(0, Math.ceil((end + 1) / 4096) * 4096))
  for (const part of ['-lock', '-journal']) if (existsSync(`${path}${part}`)) copyFileSync(`${path}${part}`, `${copy}${part}`)
  return copy
}

const report: Record<string, unknown> = {}
const store = await open(path)
for (let i = 0; i < 5; i++) await put(store, `k/first-${i}`)
const crashed = copyCrashed()
await store.writeAuth([user('first'), authRevision(1)])
let written = 5
for (; written < 10_000; written++) {
  report.refusal = await refusalOf(put(store, `k/${written}`))
  if (report.refusal !== undefined) break
}
fill()
report.someWritten = written > 10
report.revisionIsTheLastAcknowledged = store.latestRevision() === written + 1
report.allReadable = (await store.range('k/', 'k0')).kvs.filter((kv) => kv.value.length === 100_000).length === written
// LMDB's binding ends the process after some commits that failed.
const refusals = new Set<string | undefined>()
for (let i = 0; i < 30; i++) refusals.add(await refusalOf(put(store, `large/${i}`, 2_000_000)))
report.laterRefusals = [...refusals]
report.newUser = await refusalOf(store.writeAuth([user('second'), authRevision(2)]))
await store.writeAuth([{ bucket: 'authUsers', key: 'first' }, authRevision(2)])
await store.transact({ compare: [], success: [{ type: 'delete', from: 'k/first-1', to: 'k/first-2' }] })
const left = await count(store)
await store.compact(store.latestRevision())
await store.close()
const again = await open(path)
report.sameAfterOpening = (await count(again)) === left
await again.close()

const restarted = await open(crashed)
report.afterACrash = { count: await count(restarted), refusal: await refusalOf(put(restarted, 'k/later', 2_000_000)) }
for (const file of [filler, path]) rmSync(file)
await put(restarted, 'k/later')
await put(restarted, 'k/last')
await restarted.close()
const last = await open(crashed)
report.withRoomAgain = await count(last)
await last.close()
process.stdout.write(JSON.stringify(report))
