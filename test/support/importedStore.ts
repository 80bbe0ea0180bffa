/** A snapshot's file, loaded into an embedded store that is served as an etcd server, for tests. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importIntoLmdb } from '#store/drivers/lmdbImport'
import { readSnapshot } from '#store/snapshot/readSnapshot'
import { trailerBytes } from '#store/snapshot/snapshotFile'
import { type ServedStore, serveStore } from './servedStore.ts'

export async function importedStore(snapshot: string): Promise<ServedStore> {
  const folder = await mkdtemp(join(tmpdir(), 'skiff-imported-'))
  const file = (await readFile(snapshot)).subarray(0, -trailerBytes)
  const store = importIntoLmdb(join(folder, 'data.mdb'))
  const source = { length: file.length, read: (position: number, length: number) => file.subarray(position, position + length) }
  const { leases, auth, compactRevision } = await readSnapshot(source, (changes) => store.add(changes))
  await store.end({ leases, auth, compactRevision })
  await store.close()
  const served = await serveStore('file', folder)
  return { ...served, close: () => served.close().finally(() => rm(folder, { recursive: true, force: true })) }
}
