/**
 * Reads a snapshot of etcd or of this store (L2, pure): what its buckets hold, and the hash by which etcdutl tells snapshots apart. Upstream: etcd
 * etcdutl/snapshot/v3_snapshot.go, server/storage/mvcc/kvstore.go (restore) (v3.6).
 */
import { crc32c } from '#base/crc32c'
import { messageOf } from '#base/messageOf'
import { type Entry, openDatabase, type PageSource } from '../bbolt/reader.ts'
import { type AuthBucket, type AuthEntry, authBuckets, type LeaseId, type Revision, type StoredChange } from '../store.ts'
import { decodeKeyValue, decodeLease, decodeRevisionKey, isTombstoneKey, uint64 } from './encoding.ts'

export interface SnapshotSummary {
  /** CRC-32C of the names, keys and values of all buckets. */
  readonly hash: number
  /** The newest revision of a key. */
  readonly revision: Revision
  /** Keys that exist at the newest revision. */
  readonly totalKey: number
  /** Bytes of the database. */
  readonly totalSize: number
  /** etcd's release of the layout; empty before 3.6. */
  readonly version: string
  /** 0: the history was never compacted. */
  readonly compactRevision: Revision
  readonly leases: readonly { readonly id: LeaseId; readonly ttlSeconds: number }[]
  /** Users, roles, and whether calls need a user. Empty for an etcd that never had any. */
  readonly auth: readonly AuthEntry[]
}

/** A file that is a database, but holds something that etcd does not write. */
export class NoSnapshot extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NoSnapshot'
  }
}

/** What a record of the embedded store has room for. */
const mostSub = 2 ** 31 - 1
const mostVersions = 2 ** 32 - 1

/** Entries, and bytes of them, after which a reader of {@link readSnapshot} gets its turn. */
const slice = 500
const sliceBytes = 4 << 20

/**
 * Reads everything once, and calls `onChanges` with the changes in order. The newest revision is not among them where only a raised revision has it.
 * @throws DamagedDatabase, NoSnapshot
 */
export async function readSnapshot(source: PageSource, onChanges: (changes: readonly StoredChange[]) => Promise<void> | void): Promise<SnapshotSummary> {
  const database = openDatabase(source)
  const meta = new Map<string, Buffer>()
  const leases: { id: LeaseId; ttlSeconds: number }[] = []
  const live = new Set<string>()
  const auth: AuthEntry[] = []
  let [hash, revision, hasKeys] = [0, 0, false]
  let changes: StoredChange[] = []
  let bytes = 0
  const take = (entry: Entry) => {
    const change = changeOf(entry)
    revision = change.modRevision
    if (isTombstoneKey(entry.key)) live.delete(change.key)
    else live.add(change.key)
    // etcdutl raises the revision with an entry that has no key.
    if (change.key !== '') changes.push(change)
    bytes += entry.value.length
  }
  for (const { name, entries } of database.buckets()) {
    hash = crc32c(Buffer.from(name, 'latin1'), hash)
    if (name === 'key') hasKeys = true
    for (const entry of entries) {
      hash = crc32c(entry.value, crc32c(entry.key, hash))
      if (name === 'key') take(entry)
      else if (name === 'lease') leases.push(decoded('a lease', () => decodeLease(entry.value)))
      else if (name === 'meta') meta.set(entry.key.toString('latin1'), entry.value)
      else if (isAuthBucket(name)) auth.push(authEntryOf(name, entry))
      if (changes.length < slice && bytes < sliceBytes) continue
      await onChanges(changes)
      changes = []
      bytes = 0
    }
  }
  await onChanges(changes)
  database.checkAllReached()
  if (!hasKeys || !meta.size) throw new NoSnapshot('the database has no buckets "key" and "meta": it is none of etcd')
  return {
    ...{ hash, revision, leases },
    auth: auth.filter((entry) => !isInitial(entry)),
    totalKey: live.size,
    totalSize: database.pages * database.pageBytes,
    version: meta.get('storageVersion')?.toString('latin1') ?? '',
    compactRevision: Math.max(revisionOf(meta.get('finishedCompactRev')), revisionOf(meta.get('scheduledCompactRev'))),
  }
}

const isAuthBucket = (name: string): name is AuthBucket => authBuckets.some((bucket) => bucket === name)

/** LMDB's keys are short. */
const mostNameBytes = 512

function authEntryOf(bucket: AuthBucket, { key, value }: Entry): AuthEntry {
  if (key.length > mostNameBytes) throw new NoSnapshot(`the bucket "${bucket}" has a name of ${key.length} bytes; at most ${mostNameBytes} are supported`)
  return { bucket, key: key.toString('latin1'), value: new Uint8Array(value) }
}

/** What each etcd has from its first start on: revision 1, and users are not needed. */
function isInitial({ bucket, key, value }: AuthEntry): boolean {
  if (bucket !== 'auth') return false
  return (key === 'authRevision' && uint64(1).equals(value)) || (key === 'authEnabled' && value[0] === 0)
}

function changeOf({ key, value }: Entry): StoredChange {
  const at = decodeRevisionKey(key)
  if (!at) throw new NoSnapshot(`the bucket "key" holds the key ${key.toString('hex')}, which is no revision`)
  const found = decoded(`revision ${at.main}`, () => decodeKeyValue(value))
  if (at.sub > mostSub || found.version > mostVersions)
    throw new NoSnapshot(`revision ${at.main} has more changes, or its key more versions, than a store counts`)
  if (at.isTombstone) return { ...found, createRevision: 0, version: 0, lease: 0, modRevision: at.main, sub: at.sub }
  return { ...found, modRevision: at.main, sub: at.sub, version: found.key === '' ? found.version : Math.max(1, found.version) }
}

function decoded<T>(what: string, decode: () => T): T {
  try {
    return decode()
  } catch (error) {
    throw new NoSnapshot(`${what} cannot be decoded: ${messageOf(error)}`)
  }
}

function revisionOf(key: Buffer | undefined): Revision {
  if (!key) return 0
  const found = decodeRevisionKey(key)
  if (!found) throw new NoSnapshot('the revision of the compaction cannot be decoded')
  return found.main
}
