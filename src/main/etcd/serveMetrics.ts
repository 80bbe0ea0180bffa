/**
 * What `/metrics` of `skiff etcd serve` says of the store, under etcd's names (L5): how large it is, at each request, and how long the disk takes. Calls are counted by
 * src/store/serve/serveMetrics.ts. Upstream: etcd server/etcdserver/metrics.go, server/storage/backend/metrics.go, server/storage/wal/metrics.go (v3.6).
 */
import { exponentialBuckets, type Metrics } from '#base/metrics'
import type { StoreTimings } from '#store/local/backends/lmdb'
import { etcdVersion } from '#store/serve/api'
import type { LocalStore } from '#store/store'

/** Upstream: from a millisecond to eight seconds. */
const buckets = exponentialBuckets(0.001, 2, 14)

export function storeTimings(metrics: Metrics): StoreTimings {
  const histogram = (name: string, help: string) => metrics.histogram({ name, help, buckets }).series({})
  const logged = histogram('etcd_disk_wal_fsync_duration_seconds', 'Time of a write of the journal, which is on the disk at its end.')
  const committed = histogram('etcd_disk_backend_commit_duration_seconds', 'Time of a commit of the database, which is on the disk at its end.')
  return { onLogged: (seconds) => logged.observe(seconds), onCommitted: (seconds) => committed.observe(seconds) }
}

type Sample = readonly [name: string, type: 'counter' | 'gauge', help: string, value: number, labels?: string]

/** In the text format. The member leads from its start, and has applied what it has acknowledged: its revisions are the entries. */
export async function storeMetricsText(
  store: LocalStore,
  { memberId, quotaBytes }: { readonly memberId: number; readonly quotaBytes: number },
): Promise<string> {
  const { totalBytes, liveBytes } = await store.size()
  const revision = store.latestRevision()
  const samples: readonly Sample[] = [
    ['etcd_server_has_leader', 'gauge', 'Whether a leader exists.', 1],
    ['etcd_server_is_leader', 'gauge', 'Whether this member is the leader.', 1],
    ['etcd_server_is_learner', 'gauge', 'Whether this member is a learner.', 0],
    ['etcd_server_leader_changes_seen_total', 'counter', 'Elections that the member has seen.', 1],
    ['etcd_server_proposals_committed_total', 'gauge', 'Entries that are acknowledged.', revision],
    ['etcd_server_proposals_applied_total', 'gauge', 'Entries that are applied.', revision],
    ['etcd_server_quota_backend_bytes', 'gauge', 'Bytes from which on writes are refused.', quotaBytes],
    ['etcd_server_id', 'gauge', 'The member.', 1, `server_id="${memberId.toString(16)}"`],
    ['etcd_server_version', 'gauge', 'The release of etcd whose API is served.', 1, `server_version="${etcdVersion}"`],
    ['etcd_cluster_version', 'gauge', 'The version of the cluster.', 1, `cluster_version="${etcdVersion.replace(/\.\d+$/, '')}"`],
    ['etcd_mvcc_db_total_size_in_bytes', 'gauge', 'Bytes of the store on the disk.', totalBytes],
    ['etcd_mvcc_db_total_size_in_use_in_bytes', 'gauge', 'Bytes that live data needs.', liveBytes],
    ['etcd_debugging_mvcc_current_revision', 'gauge', 'The newest revision.', revision],
    ['etcd_debugging_mvcc_compact_revision', 'gauge', 'The revision of the last compaction.', store.compactRevision()],
    ['etcd_debugging_server_lease_expired_total', 'counter', 'Leases that have expired.', store.expiredLeaseCount],
  ]
  return samples
    .map(([name, type, help, value, labels]) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}${labels ? `{${labels}}` : ''} ${value}\n`)
    .join('')
}
