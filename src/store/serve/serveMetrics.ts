/**
 * Counts the calls of etcd's API and what they do (L2), under the names of etcd and of gRPC's interceptors. Upstream: etcd server/etcdserver/metrics.go,
 * server/storage/mvcc/metrics.go and metrics_txn.go, server/lease/metrics.go (v3.6), go-grpc-middleware/providers/prometheus.
 */
import type { CounterSeries, GaugeSeries, Metrics } from '#base/metrics'
import { GrpcError, type StatusName } from '#grpc/grpcError'
import { GrpcRefusal, type ServiceImplementation } from '#grpc/grpcService'

export interface ServeMetrics {
  /** The service, whose calls are counted from now on. */
  counted(service: ServiceImplementation): ServiceImplementation
  readonly watchStreams: GaugeSeries
  readonly watchers: GaugeSeries
  readonly watchEvents: CounterSeries
  readonly renewedLeases: CounterSeries
}

type Methods = NonNullable<ServiceImplementation['methods']>
type Method = Methods[string]
type Streams = NonNullable<ServiceImplementation['streams']>

interface TransactionAnswer {
  readonly responses: readonly {
    readonly responseRange?: object
    readonly responsePut?: object
    readonly responseDeleteRange?: object
    readonly responseTxn?: TransactionAnswer
  }[]
}

/** Calls that etcd proposes to its members. */
const isProposal = (service: string, method: string) =>
  service === 'Auth' || (service === 'KV' && method !== 'Range') || (service === 'Lease' && /^Lease(Grant|Revoke)$/.test(method))

/** Failures of the server, not of the request. */
const ofServer: ReadonlySet<StatusName> = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'UNKNOWN'])

export function createServeMetrics(metrics: Metrics): ServeMetrics {
  const counter = (name: string, help: string) => metrics.counter({ name, help }).series({})
  const gauge = (name: string, help: string) => metrics.gauge({ name, help }).series({})
  const callLabels = ['grpc_type', 'grpc_service', 'grpc_method']
  const started = metrics.counter({ name: 'grpc_server_started_total', help: 'Calls that the server has begun.', labels: callLabels })
  const handled = metrics.counter({ name: 'grpc_server_handled_total', help: 'Calls that have ended, by their status.', labels: [...callLabels, 'grpc_code'] })
  const pending = gauge('etcd_server_proposals_pending', 'Writes under way.')
  const failed = counter('etcd_server_proposals_failed_total', 'Writes that failed for a reason of the server.')
  const effectOf = effects(counter)

  const counting = (service: string, method: string, type: string) => {
    const labels = { grpc_type: type, grpc_service: service, grpc_method: method }
    const begun = started.series(labels)
    const ended = new Map<StatusName, CounterSeries>()
    return {
      begin: () => begun.inc(),
      end: (status: StatusName) => {
        let series = ended.get(status)
        if (!series) {
          series = handled.series({ ...labels, grpc_code: codeOf(status) })
          ended.set(status, series)
        }
        series.inc()
      },
    }
  }

  const countedMethod = (service: string, name: string, handle: Method): Method => {
    const { begin, end } = counting(service, name, 'unary')
    const bare = service.slice(service.lastIndexOf('.') + 1)
    const effect = effectOf(`${bare}.${name}`)
    const proposes = isProposal(bare, name)
    return async (request, client) => {
      begin()
      if (proposes) pending.add(1)
      try {
        const answer = await handle(request, client)
        end('OK')
        effect?.(answer)
        return answer
      } catch (error) {
        const status = statusOf(error)
        end(status)
        if (proposes && ofServer.has(status)) failed.inc()
        throw error
      } finally {
        if (proposes) pending.add(-1)
      }
    }
  }

  const countedStream = (service: string, name: string, handle: Streams[string]): Streams[string] => {
    const { begin, end } = counting(service, name, name === 'Snapshot' ? 'server_stream' : 'bidi_stream')
    return async (call) => {
      begin()
      try {
        await handle(call)
        end(call.signal.aborted ? 'CANCELLED' : 'OK')
      } catch (error) {
        end(call.signal.aborted ? 'CANCELLED' : statusOf(error))
        throw error
      }
    }
  }

  return {
    counted: (one) => ({
      ...one,
      methods: mapped(one.methods ?? {}, (handle, name) => countedMethod(one.service, name, handle)),
      streams: mapped(one.streams ?? {}, (handle, name) => countedStream(one.service, name, handle)),
    }),
    watchStreams: gauge('etcd_debugging_mvcc_watch_stream_total', 'Calls of the method Watch that are under way.'),
    watchers: gauge('etcd_debugging_mvcc_watcher_total', 'Watches of all calls.'),
    watchEvents: counter('etcd_debugging_mvcc_events_total', 'Events that were sent to watches.'),
    renewedLeases: counter('etcd_debugging_lease_renewed_total', 'Leases that were prolonged.'),
  }
}

/** What a method does when it succeeds. */
function effects(counter: (name: string, help: string) => CounterSeries): (method: string) => ((answer: object) => void) | undefined {
  const ranges = counter('etcd_mvcc_range_total', 'Ranges that were read.')
  const puts = counter('etcd_mvcc_put_total', 'Keys that were put.')
  const deletes = counter('etcd_mvcc_delete_total', 'Ranges that were deleted.')
  const transactions = counter('etcd_mvcc_txn_total', 'Transactions of more than one operation.')
  const granted = counter('etcd_debugging_lease_granted_total', 'Leases that were granted.')
  const revoked = counter('etcd_debugging_lease_revoked_total', 'Leases that clients have revoked.')
  const count = ({ responses }: TransactionAnswer): void => {
    for (const { responseRange, responsePut, responseTxn } of responses) {
      if (responseTxn) count(responseTxn)
      else (responseRange ? ranges : responsePut ? puts : deletes).inc()
    }
  }
  const all = new Map<string, (answer: object) => void>(
    Object.entries({
      'KV.Range': () => ranges.inc(),
      'KV.Put': () => puts.inc(),
      'KV.DeleteRange': () => deletes.inc(),
      'KV.Txn': (answer: object) => {
        count(answer as TransactionAnswer)
        if ((answer as TransactionAnswer).responses.length > 1) transactions.inc()
      },
      'Lease.LeaseGrant': () => granted.inc(),
      'Lease.LeaseRevoke': () => revoked.inc(),
    }),
  )
  return (method) => all.get(method)
}

function statusOf(error: unknown): StatusName {
  return error instanceof GrpcRefusal || error instanceof GrpcError ? error.code : 'UNKNOWN'
}

/** As Go names it: `InvalidArgument`. */
function codeOf(status: StatusName): string {
  if (status === 'OK') return status
  if (status === 'CANCELLED') return 'Canceled'
  return status
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('')
}

function mapped<From, To>(all: Readonly<Record<string, From>>, change: (one: From, name: string) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, change(one, name)]))
}
