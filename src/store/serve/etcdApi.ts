/**
 * The store as etcd's gRPC API v3 (L2): one member, which is always the leader. What etcd's API has and this server lacks is refused by name.
 * Upstream: etcd server/etcdserver/api/v3rpc (v3.6).
 */
import { noMetrics } from '#base/metrics'
import type { ServiceImplementation } from '#grpc/grpcService'
import { etcdProto } from '#grpc/proto/etcd'
import { type Alarms, createAlarms } from './alarms.ts'
import type { EtcdApi, EtcdApiOptions } from './api.ts'
import { authService } from './auth/authService.ts'
import { AuthStore } from './auth/authStore.ts'
import { guarded } from './auth/guard.ts'
import type { GuardedService } from './guardedService.ts'
import { keyService } from './keyService.ts'
import { leaseService } from './leaseService.ts'
import { clusterService, maintenanceService } from './maintenanceService.ts'
import { createServeMetrics } from './serveMetrics.ts'
import { watchService } from './watchService.ts'

export interface EtcdServices {
  readonly services: readonly ServiceImplementation[]
  readonly alarms: Alarms
  readonly auth: AuthStore
}

export function etcdServices(options: EtcdApiOptions): EtcdServices {
  const alarms = createAlarms()
  const header = (revision = options.store.latestRevision()) => ({ clusterId: options.clusterId, memberId: options.memberId, revision, raftTerm: 1 })
  const auth = new AuthStore(options)
  const metrics = createServeMetrics(options.metrics ?? noMetrics)
  const api: EtcdApi = { ...options, alarms, auth, header, metrics }
  const of = (service: string, parts: GuardedService) =>
    metrics.counted({ proto: etcdProto, service: `etcdserverpb.${service}`, ...guarded(api, service, parts) })
  return {
    alarms,
    auth,
    services: [
      of('KV', keyService(api)),
      of('Watch', watchService(api)),
      of('Lease', leaseService(api)),
      of('Maintenance', maintenanceService(api)),
      of('Cluster', clusterService(api)),
      of('Auth', authService(api)),
    ],
  }
}
