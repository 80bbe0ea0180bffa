/** Fills the disk under an embedded store, and reports what still works: one JSON object on stdout. Runs where storeFull.test.ts mounted a small disk. */
import { noLog } from '#base/log'
import { openLmdbStore } from '#store/drivers/lmdb'
import { isStoreError } from '#store/storeError'
import { realClock } from '#testing/realClock'

const path = process.argv[2] ?? ''
const open = () => openLmdbStore({ path, clock: realClock, log: noLog })
const store = await open()
const put = (key: string) => store.transact({ compare: [], success: [{ type: 'put', key, value: new Uint8Array(100_000) }] })
const report: Record<string, unknown> = {}
let written = 0
try {
  for (; written < 10_000; written++) await put(`k/${written}`)
} catch (error) {
  report.refusal = isStoreError(error) ? error.code : String(error)
}
report.someWritten = written > 10
report.revisionIsTheLastAcknowledged = (await store.latestRevision()) === written + 1
report.allReadable = (await store.range('k/', 'k0')).kvs.filter((kv) => kv.value.length === 100_000).length === written
await store.transact({ compare: [], success: [{ type: 'delete', from: 'k/1', to: 'k/2' }] })
const left = (await store.range('k/', 'k0', { keysOnly: true })).count
await store.compact(await store.latestRevision())
await store.close()
const again = await open()
report.sameAfterOpening = (await again.range('k/', 'k0', { keysOnly: true })).count === left
await again.close()
process.stdout.write(JSON.stringify(report))
