/** Loads a snapshot, of etcd or of this store, into a new file of the embedded store (L2). */
import { type ImportedFacts, importStore } from '../local/backends/lmdbImport.ts'
import type { StoredChange } from '../store.ts'

export interface LmdbImport {
  add(changes: readonly StoredChange[]): Promise<void>
  /** @param compactRevision may be above the revision of every change: the store continues after it. */
  end(facts: ImportedFacts): Promise<void>
  close(): Promise<void>
}

/** @param path of a file that does not exist, in a folder that does. @throws StoreError 'unavailable' or 'noSpace', from all methods */
export function importIntoLmdb(path: string): LmdbImport {
  const { add, end, close } = importStore(path)
  return { end, close, add: (changes) => add(changes.map((change) => ({ ...change, bytes: change.key.length + change.value.length }))) }
}
