/** etcd's Maintenance and Cluster services (L2), for one member. Upstream: etcd server/etcdserver/api/v3rpc/maintenance.go, member.go (v3.6). */
import type { StreamCall } from '#grpc/grpcService'
import type { AlarmType } from './alarms.ts'
import { type EtcdApi, etcdVersion } from './api.ts'
import type { GuardedService } from './guardedService.ts'
import { snapshotMethods } from './snapshotMethods.ts'

interface AlarmRequest {
  readonly action: 'GET' | 'ACTIVATE' | 'DEACTIVATE' | number
  readonly memberId: number
  readonly alarm: 'NOALARM' | AlarmType | number
}

export function maintenanceService(api: EtcdApi): GuardedService {
  const { methods, streams } = snapshotMethods(api)
  return {
    streams: {
      Snapshot: (call: StreamCall<object>, permit: (request: object) => void) => {
        permit({})
        return streams.Snapshot(call, () => permit({}))
      },
    },
    methods: {
      ...methods,
      Status: async () => {
        const { totalBytes, liveBytes } = await api.store.size()
        const revision = api.store.latestRevision()
        return {
          header: api.header(revision),
          version: etcdVersion,
          storageVersion: etcdVersion.replace(/\d+$/, '0'),
          dbSize: totalBytes,
          dbSizeInUse: liveBytes,
          dbSizeQuota: api.quotaBytes,
          leader: api.memberId,
          // A store without Raft: its revisions are the entries that are applied.
          raftIndex: revision,
          raftAppliedIndex: revision,
          raftTerm: api.header().raftTerm,
          errors: api.alarms.active().map((alarm) => `memberID:${api.memberId} alarm:${alarm} `),
        }
      },
      Alarm: ({ action, memberId, alarm }: AlarmRequest) => {
        const known = alarm === 'NOSPACE' || alarm === 'CORRUPT' ? alarm : undefined
        if (action === 'ACTIVATE' && known) api.alarms.raise(known)
        const before = api.alarms.active().filter((one) => known === undefined || one === known)
        const isOwn = memberId === 0 || memberId === api.memberId
        if (action === 'DEACTIVATE' && isOwn) for (const one of before) api.alarms.disarm(one)
        return { header: api.header(), alarms: before.map((one) => ({ memberId: api.memberId, alarm: one })) }
      },
    },
  }
}

export function clusterService(api: EtcdApi): GuardedService {
  const { memberId, name, clientUrls } = api
  return { methods: { MemberList: () => ({ header: api.header(), members: [{ id: memberId, name, peerUrls: [], clientUrls }] }) } }
}
