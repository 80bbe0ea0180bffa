/** etcd's hashes of a store (L2, pure): two stores with the same data have the same ones. Upstream: etcd server/storage/mvcc/hash.go, server/storage/backend (v3.6). */
import { crc32c } from '#base/crc32c'
import type { Revision, StoreSnapshot } from '../store.ts'
import { bucketsOf, entryOf, type SnapshotFacts } from './buckets.ts'

/**
 * The hash of the changes up to a revision, as of HashKV. At and before the compaction only changes count that a reader at the revision meets; where such a
 * reader meets nothing at all, all changes count that the compaction has left.
 */
export async function hashOfKeys(snapshot: StoreSnapshot, revision: Revision): Promise<number> {
  const { compactRevision } = snapshot
  const name = crc32c(Buffer.from('key'))
  let hash = name
  /** The hash for the case that a reader meets nothing; undefined once one meets something. */
  let ofAll: number | undefined = name
  for await (const changes of snapshot.changes()) {
    for (const change of changes) {
      const { modRevision } = change
      if (modRevision > revision) continue
      const isLive = snapshot.isLiveAt(change, revision)
      if (isLive) ofAll = undefined
      const isHidden = modRevision <= compactRevision && !isLive
      // etcd before 3.5.16 removes the deletion that is the compaction's own revision, later releases keep it.
      const isOwnDeletion = modRevision === compactRevision && change.version === 0
      if (isOwnDeletion || (isHidden && ofAll === undefined)) continue
      const { key, value } = entryOf(change)
      if (ofAll !== undefined) ofAll = crc32c(value, crc32c(key, ofAll))
      if (!isHidden) hash = crc32c(value, crc32c(key, hash))
    }
  }
  return ofAll ?? hash
}

/** Entries of the bucket `meta` that differ between members with the same data. */
const ignored: ReadonlySet<string> = new Set(['consistent_index', 'storageVersion', 'term'])

/** The hash of the whole database, as of Hash. */
export async function hashOfDatabase(snapshot: StoreSnapshot, facts: SnapshotFacts): Promise<number> {
  let hash = 0
  for (const { name, entries } of bucketsOf(snapshot, facts)) {
    hash = crc32c(Buffer.from(name), hash)
    for await (const some of entries) {
      for (const { key, value } of some) if (name !== 'meta' || !ignored.has(key.toString())) hash = crc32c(value, crc32c(key, hash))
    }
  }
  return hash
}
