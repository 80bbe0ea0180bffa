/**
 * How objects are kept (L5). This server has its own store in place of etcd: what is about etcd's is taken where it asks for what is done anyway, and
 * refused where it asks for an etcd. Upstream: apiserver/pkg/server/options/etcd.go (v1.36).
 */
import { duration, flag, list, text, UsageError, whole } from './flags.ts'
import { optionGroup } from './optionGroup.ts'

const ofEtcd = "Accepted, without effect: it is about etcd, and this server's store is a part of it"
const ofCache = 'Accepted, without effect: what is watched is held whole, once'
const elsewhere = 'Must be empty: this server does not use etcd'

const etcdFlags = ['etcd-servers', 'etcd-servers-overrides', 'etcd-cafile', 'etcd-certfile', 'etcd-keyfile'] as const

export const storage = optionGroup({
  name: 'Storage',
  flags: {
    'delete-collection-workers': whole('Accepted, without effect: the objects of a collection are deleted as fast as writes are taken', 1),
    'enable-garbage-collector': flag('Only true: owners that wait for what they own, or leave it, always can', true),
    'etcd-cafile': text(elsewhere),
    'etcd-certfile': text(elsewhere),
    'etcd-compaction-interval': duration('At this interval, history that is older than it is compacted; 0: never', 300_000),
    'etcd-count-metric-poll-period': duration(ofEtcd, 60_000),
    'etcd-db-metric-poll-interval': duration(ofEtcd, 30_000),
    'etcd-healthcheck-timeout': duration(ofEtcd, 2000),
    'etcd-keyfile': text(elsewhere),
    'etcd-prefix': text(ofEtcd, '/registry'),
    'etcd-readycheck-timeout': duration(ofEtcd, 2000),
    'etcd-servers': list(elsewhere),
    'etcd-servers-overrides': list(elsewhere),
    'event-ttl': duration('How long events are kept', 3_600_000),
    'lease-reuse-duration-seconds': whole(ofEtcd, 60),
    'storage-backend': text('Empty or etcd3, whose promises this store keeps'),
    'storage-initialization-timeout': duration(ofEtcd, 60_000),
    'storage-media-type': text(ofEtcd, 'application/vnd.kubernetes.protobuf'),
    'watch-cache': flag(ofCache, true),
    'watch-cache-sizes': list(ofCache),
  },
  settings(values) {
    const backend = values['storage-backend']
    const faults = [
      ...etcdFlags.filter((name) => values[name].length > 0).map((name) => `--${name}: this server keeps its objects itself, below --data-dir: leave it out`),
      ...(['', 'etcd3'].includes(backend) ? [] : [`--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'`]),
      ...(values['etcd-compaction-interval'] >= 0 ? [] : ['--etcd-compaction-interval must not be negative']),
      ...(values['event-ttl'] >= 1000 ? [] : ['--event-ttl must be at least one second']),
      ...(values['enable-garbage-collector'] ? [] : ['--enable-garbage-collector=false is not there: owners that wait for what they own could never go']),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    return { eventTtlSeconds: Math.floor(values['event-ttl'] / 1000), compactionIntervalMs: values['etcd-compaction-interval'] }
  },
})
