/** etcd's Lease service (L2). Upstream: etcd server/etcdserver/api/v3rpc/lease.go, server/lease/lessor.go (v3.6). */
import type { StreamCall } from '#grpc/grpcService'
import { leaseIdOf } from '../leaseId.ts'
import type { LeaseId } from '../store.ts'
import { isStoreError } from '../storeError.ts'
import { refuseUnderAlarm } from './alarms.ts'
import type { EtcdApi } from './api.ts'
import type { GuardedService } from './guardedService.ts'
import { notServed, refusal, refusalOf } from './refusals.ts'

/** Upstream: MaxLeaseTTL. */
const maxTtlSeconds = 9_000_000_000
/** Upstream: one and a half election timeouts, in whole seconds. */
const minTtlSeconds = 2
/** Leases live in memory: etcd does not bound them. */
const maxLeases = 1_000_000

interface LeaseRequest {
  /** Decimal text. */
  readonly id: string
}

export function leaseService(api: EtcdApi): GuardedService {
  const { store } = api
  const granting = new Set<LeaseId>()

  async function grant({ id: text, ttl }: LeaseRequest & { readonly ttl: number }): Promise<object> {
    if (ttl > maxTtlSeconds) throw refusal('ttlTooLarge')
    refuseUnderAlarm(api.alarms, true)
    const id = leaseIdOf(text)
    if (id < 0) throw notServed('lease ids must not be negative')
    if (store.leaseCount >= maxLeases) throw refusal('noSpace')
    const ttlSeconds = Math.max(ttl, minTtlSeconds)
    if (id === 0) return { header: api.header(), id: await store.grantLease(ttlSeconds), ttl: ttlSeconds }
    if (granting.has(id) || store.lease(id)) throw refusal('leaseExists')
    granting.add(id)
    try {
      return { header: api.header(), id: await store.grantLease(ttlSeconds, id), ttl: ttlSeconds }
    } finally {
      granting.delete(id)
    }
  }

  async function keepAlive({ id }: LeaseRequest): Promise<object> {
    try {
      const { ttlSeconds } = await store.keepLeaseAlive(leaseIdOf(id))
      api.metrics.renewedLeases.inc()
      return { header: api.header(), id, ttl: ttlSeconds }
    } catch (error) {
      // A lease that is not there has no time left.
      if (isStoreError(error, 'leaseNotFound')) return { header: api.header(), id, ttl: 0 }
      throw refusalOf(error)
    }
  }

  return {
    methods: {
      LeaseGrant: (request: LeaseRequest & { readonly ttl: number }) => grant(request).catch(rethrow),
      LeaseRevoke: async ({ id }: LeaseRequest) => {
        refuseUnderAlarm(api.alarms, false)
        await store.revokeLease(leaseIdOf(id)).catch(rethrow)
        return { header: api.header() }
      },
      LeaseTimeToLive: ({ id, keys }: LeaseRequest & { readonly keys: boolean }) => {
        const lease = store.lease(leaseIdOf(id))
        if (!lease) return { header: api.header(), id, ttl: -1 }
        const own = keys ? [...store.leaseKeys(leaseIdOf(id))].sort().map((key) => Buffer.from(key, 'latin1')) : []
        return { header: api.header(), id, ttl: lease.remainingSeconds, grantedTtl: lease.ttlSeconds, keys: own }
      },
      LeaseLeases: () => ({ header: api.header(), leases: store.leaseIds().map((id) => ({ id })) }),
    },
    streams: {
      LeaseKeepAlive: async (call: StreamCall<LeaseRequest>, permit: (request: LeaseRequest) => void) => {
        for await (const request of call.requests) {
          permit(request)
          call.send(await keepAlive(request))
          await call.drained()
        }
      },
    },
  }
}

function rethrow(error: unknown): never {
  throw refusalOf(error)
}
