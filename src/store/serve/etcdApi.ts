/**
 * The store as etcd's gRPC API v3 (L2): one member, which is always the leader. What etcd's API has and this server lacks is refused by name.
 * Upstream: etcd server/etcdserver/api/v3rpc (v3.6).
 */
import type { ServiceImplementation } from '#grpc/grpcService'
import { etcdProto } from '#grpc/proto/etcd'
import { type Alarms, createAlarms } from './alarms.ts'
import type { EtcdApi, EtcdApiOptions } from './api.ts'
import { keyService } from './keyService.ts'
import { leaseService } from './leaseService.ts'
import { clusterService, maintenanceService } from './maintenanceService.ts'
import { watchService } from './watchService.ts'

export function etcdServices(options: EtcdApiOptions): { readonly services: readonly ServiceImplementation[]; readonly alarms: Alarms } {
  const alarms = createAlarms()
  const header = (revision = options.store.latestRevision()) => ({ clusterId: options.clusterId, memberId: options.memberId, revision, raftTerm: 1 })
  const api: EtcdApi = { ...options, alarms, header }
  const of = (service: string, parts: Pick<ServiceImplementation, 'methods' | 'streams'>) => ({
    proto: etcdProto,
    service: `etcdserverpb.${service}`,
    ...parts,
  })
  return {
    alarms,
    services: [
      of('KV', keyService(api)),
      of('Watch', watchService(api)),
      of('Lease', leaseService(api)),
      of('Maintenance', maintenanceService(api)),
      of('Cluster', clusterService(api)),
      of('Auth', { methods: { AuthStatus: () => ({ header: api.header(), enabled: false, authRevision: 1 }) } }),
    ],
  }
}
