/**
 * Reads a snapshot of etcd or of this store (L2, pure): what its buckets hold, and the figures by which etcdutl tells snapshots apart. Upstream:
 * etcd etcdutl/snapshot/v3_snapshot.go, server/storage/mvcc/kvstore.go (restore) (v3.6).
 */
import { crc32c } from '#base/crc32c'
import { messageOf } from '#base/messageOf'
import { type Entry, openDatabase, type PageSource } from '../bbolt/reader.ts'
import { type AuthBucket, type AuthEntry, authBuckets, type KeyValue, type LeaseId, type Revision, type StoredChange } from '../store.ts'
import { decodeKeyValue, decodeLease, decodeRevisionKey, isTombstoneKey, uint64 } from './encoding.ts'

export interface SnapshotSummary {
  /** The newest revision of a key. */
  readonly revision: Revision
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

/** Figures that cost more than reading the changes does. */
export class SnapshotFigures {
  readonly #live = new Set<string>()
  #hash = 0

  /** CRC-32C of the names, keys and values of all buckets. */
  get hash(): number {
    return this.#hash
  }

  /** Keys that exist at the newest revision. */
  get totalKey(): number {
    return this.#live.size
  }

  addBytes(bytes: Uint8Array): void {
    this.#hash = crc32c(bytes, this.#hash)
  }

  addChange(key: string, isTombstone: boolean): void {
    if (isTombstone) this.#live.delete(key)
    else this.#live.add(key)
  }
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
 * @param figures filled on the way
 * @throws DamagedDatabase, NoSnapshot
 */
export async function readSnapshot(
  source: PageSource,
  onChanges: (changes: readonly StoredChange[]) => Promise<void> | void,
  figures?: SnapshotFigures,
): Promise<SnapshotSummary> {
  const database = openDatabase(source)
  const meta = new Map<string, Buffer>()
  const leases: { id: LeaseId; ttlSeconds: number }[] = []
  const auth: AuthEntry[] = []
  let [revision, hasKeys] = [0, false]
  let changes: StoredChange[] = []
  let bytes = 0
  const take = (entry: Entry) => {
    const change = changeOf(entry)
    revision = change.modRevision
    figures?.addChange(change.key, isTombstoneKey(entry.key))
    // etcdutl raises the revision with an entry that has no key.
    if (change.key !== '') changes.push(change)
    bytes += entry.value.length
  }
  for (const { name, entries } of database.buckets()) {
    figures?.addBytes(Buffer.from(name, 'latin1'))
    if (name === 'key') hasKeys = true
    for (const entry of entries) {
      figures?.addBytes(entry.key)
      figures?.addBytes(entry.value)
      if (name === 'key') take(entry)
      else if (name === 'lease') leases.push(leaseOf(entry))
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
    ...{ revision, leases },
    auth: auth.filter((entry) => !isInitial(entry)),
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
  let found: KeyValue
  try {
    found = decodeKeyValue(value)
  } catch (error) {
    throw undecodable(`revision ${at.main}`, error)
  }
  if (at.sub > mostSub || found.version > mostVersions)
    throw new NoSnapshot(`revision ${at.main} has more changes, or its key more versions, than a store counts`)
  const { key: name, value: bytes, createRevision, version, lease } = found
  if (at.isTombstone) return { key: name, value: bytes, createRevision: 0, modRevision: at.main, version: 0, lease: 0, sub: at.sub }
  return { key: name, value: bytes, createRevision, modRevision: at.main, version: name === '' ? version : Math.max(1, version), lease, sub: at.sub }
}

function leaseOf({ value }: Entry): { id: LeaseId; ttlSeconds: number } {
  try {
    return decodeLease(value)
  } catch (error) {
    throw undecodable('a lease', error)
  }
}

function undecodable(what: string, error: unknown): NoSnapshot {
  return new NoSnapshot(`${what} cannot be decoded: ${messageOf(error)}`)
}

function revisionOf(key: Buffer | undefined): Revision {
  if (!key) return 0
  const found = decodeRevisionKey(key)
  if (!found) throw new NoSnapshot('the revision of the compaction cannot be decoded')
  return found.main
}
