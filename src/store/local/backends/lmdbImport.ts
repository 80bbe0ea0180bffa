/** Makes the file of an embedded store from a snapshot (L2): revision by revision, so that memory holds some thousand changes, and some megabytes of them. */
import { closeSync, openSync } from 'node:fs'
import type { StoreSnapshot } from '../../store.ts'
import type { BackendChange } from '../backend.ts'
import type { Version } from '../mvcc/keyHistory.ts'
import { closeFiles, flushed, openFiles, write, writeFormat } from './lmdb.ts'
import { encodeRecord } from './record.ts'
import { formatFor } from './storeFormat.ts'

export type ImportedFacts = Pick<StoreSnapshot, 'leases' | 'auth' | 'compactRevision'>

export interface StoreImport {
  /** Adds changes, in order. */
  add(changes: readonly Version[]): Promise<void>
  /** Completes the file: everything is on the disk afterwards. */
  end(facts: ImportedFacts): Promise<void>
  /** Closes the file, complete or not. */
  close(): Promise<void>
}

/** Writes, and bytes of them, handed to LMDB before it is waited for. */
const batch = 2000
const batchBytes = 16 << 20

/** @param path of a file that does not exist. @throws StoreError 'unavailable' or 'noSpace', from all methods */
export function importStore(path: string): StoreImport {
  closeSync(openSync(path, 'wx', 0o600))
  const files = openFiles(path)
  let writes: Promise<boolean>[] = []
  let bytes = 0
  /** Changes of the newest revision, of which more may come. */
  let open: Version[] = []
  const put = (written: Promise<boolean>) => {
    // A failure is reported by flush().
    written.catch(() => {})
    writes.push(written)
  }
  const flush = async () => {
    const waiting = writes
    writes = []
    bytes = 0
    await flushed(files.root, waiting)
  }
  const endRevision = () => {
    const [first] = open
    if (first) {
      const record = encodeRecord(open)
      put(files.records.put(first.modRevision, record))
      bytes += record.length
    }
    open = []
  }
  return {
    async add(changes) {
      for (const change of changes) {
        if (open[0]?.modRevision !== change.modRevision) endRevision()
        open.push(change)
        if (writes.length >= batch || bytes >= batchBytes) await flush()
      }
    },
    async end({ leases, auth, compactRevision }) {
      endRevision()
      for (const { id, ttlSeconds } of leases) put(write(files, { change: { type: 'grantLease', id, ttlSeconds }, record: undefined }))
      const changes: BackendChange[] = [
        ...(compactRevision > 0 ? [{ type: 'compact', revision: compactRevision } as const] : []),
        ...(auth.length > 0 ? [{ type: 'auth', changes: auth } as const] : []),
      ]
      put(writeFormat(files, formatFor(changes)))
      for (const change of changes) put(write(files, { change, record: undefined }))
      await flush()
    },
    close: () => closeFiles(files),
  }
}
