/**
 * A store's snapshot as the buckets of etcd's database (L2, pure), in the order of their names. Upstream: etcd server/storage/schema (v3.6).
 */
import { type AuthBucket, authBuckets, type StoredChange, type StoreSnapshot } from '../store.ts'
import { encodeKeyValue, encodeLease, revisionKey, uint64 } from './encoding.ts'

export interface BucketEntry {
  readonly key: Buffer
  readonly value: Buffer
}

export interface Bucket {
  readonly name: string
  /** By key, in lists that are each made in one turn. */
  readonly entries: AsyncIterable<readonly BucketEntry[]> | readonly (readonly BucketEntry[])[]
}

/** The release of etcd whose layout the database has. */
export const storageVersion = '3.6.0'
const text = (value: string) => Buffer.from(value, 'latin1')
const noBytes = Buffer.alloc(0)
/** Raft's term; this store has no Raft. */
const term = 1
const alarmNumbers = { NOSPACE: 1, CORRUPT: 2 } as const

export interface SnapshotFacts {
  readonly alarms: readonly (keyof typeof alarmNumbers)[]
}

export function bucketsOf(snapshot: StoreSnapshot, { alarms }: SnapshotFacts): Bucket[] {
  const leases = snapshot.leases.map((lease) => ({ key: uint64(lease.id), value: encodeLease(lease) })).sort((a, b) => Buffer.compare(a.key, b.key))
  return [
    // The key is etcdserverpb.AlarmMember: the alarm of no particular member.
    { name: 'alarm', entries: [alarms.map((alarm) => ({ key: Buffer.from([0x10, alarmNumbers[alarm]]), value: noBytes }))] },
    ...authBuckets.map((name) => ({ name, entries: [authEntries(snapshot, name)] })),
    { name: 'cluster', entries: [] },
    { name: 'key', entries: keyEntries(snapshot) },
    { name: 'lease', entries: [leases] },
    ...['members', 'members_removed'].map((name) => ({ name, entries: [] })),
    { name: 'meta', entries: [metaEntries(snapshot)] },
  ]
}

function authEntries({ auth }: StoreSnapshot, name: AuthBucket): BucketEntry[] {
  const own = auth.filter(({ bucket }) => bucket === name).map(({ key, value }) => ({ key: text(key), value: Buffer.from(value) }))
  return own.sort((a, b) => Buffer.compare(a.key, b.key))
}

async function* keyEntries(snapshot: StoreSnapshot): AsyncGenerator<readonly BucketEntry[]> {
  for await (const changes of snapshot.changes()) yield changes.map(entryOf)
}

export function entryOf(change: StoredChange): BucketEntry {
  return { key: revisionKey(change.modRevision, change.sub, change.version === 0), value: encodeKeyValue(change) }
}

function metaEntries({ revision, compactRevision }: StoreSnapshot): BucketEntry[] {
  const compaction = (name: string) => ({ key: text(name), value: revisionKey(compactRevision, 0) })
  return [
    { key: text('consistent_index'), value: uint64(revision) },
    ...(compactRevision > 0 ? [compaction('finishedCompactRev'), compaction('scheduledCompactRev')] : []),
    { key: text('storageVersion'), value: text(storageVersion) },
    { key: text('term'), value: uint64(term) },
  ]
}
