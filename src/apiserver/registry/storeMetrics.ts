/**
 * Times and counts what the API server asks of its store, by operation and resource, and counts what the store reports (L3). A store around the store.
 * Upstream: apiserver/pkg/storage/etcd3/metrics (v1.36).
 */
import { allResources, storagePrefix } from '#api/discovery/resources'
import type { Clock } from '#base/clock'
import { type CounterSeries, type HistogramSeries, type Metrics, noMetrics } from '#base/metrics'
import { type Tracer, traced } from '#base/traceContext'
import type { Store, StoreEventBatch, Transaction } from '#store/store'

type Operation = 'get' | 'list' | 'listOnlyKeys' | 'listWithCount' | 'create' | 'update' | 'delete'

interface OperationSeries {
  readonly seconds: HistogramSeries
  readonly total: CounterSeries
  readonly errors: CounterSeries
}

/** As upstream names them, where it has a span. */
const spanNames: Readonly<Record<Operation, string>> = {
  get: 'Get etcd3',
  list: 'List(recursive=true) etcd3',
  listOnlyKeys: 'List(recursive=true) etcd3',
  listWithCount: 'Count etcd3',
  create: 'Create etcd3',
  update: 'GuaranteedUpdate etcd3',
  delete: 'Delete etcd3',
}
const buckets = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60]
/** Clients choose no group or resource that is stored: a definition comes first. */
const labels = ['operation', 'group', 'resource']

export interface StoreObservers {
  readonly clock: Clock
  readonly metrics: Metrics
  /** Makes spans of requests to the store. */
  readonly tracer?: Tracer | undefined
}

/** The same store, measured. */
export function meteredStore(store: Store, { clock, metrics, tracer }: StoreObservers): Store {
  if (metrics === noMetrics && !tracer) return store
  const seriesOf = operationSeries(metrics)
  const countEvents = eventCounter(metrics)
  const timed = <T>(operation: Operation, key: string, work: () => Promise<T>): Promise<T> => {
    const series = seriesOf(operation, key)
    const startedMs = clock.monotonicMs()
    const done = () => {
      series.total.inc()
      series.seconds.observe((clock.monotonicMs() - startedMs) / 1000)
    }
    return traced(tracer, { name: spanNames[operation], kind: 'client', attributes: { key } }, work).then(
      (result) => {
        done()
        return result
      },
      (error: unknown) => {
        done()
        series.errors.inc()
        throw error
      },
    )
  }
  return {
    maxValueBytes: store.maxValueBytes,
    latestRevision: (cancellable) => store.latestRevision(cancellable),
    range(from, to, options) {
      const ofMany = options?.countOnly ? 'listWithCount' : options?.keysOnly ? 'listOnlyKeys' : 'list'
      return timed(to === undefined ? 'get' : ofMany, from, () => store.range(from, to, options))
    },
    transact(transaction) {
      const [operation, key] = operationOf(transaction)
      return timed(operation, key, () => store.transact(transaction))
    },
    watch(options, onBatch, signal) {
      const counted = (batch: StoreEventBatch) => {
        countEvents(batch)
        onBatch(batch)
      }
      return store.watch(options, counted, signal)
    },
    grantLease: (ttlSeconds) => store.grantLease(ttlSeconds),
    keepLeaseAlive: (id) => store.keepLeaseAlive(id),
    revokeLease: (id) => store.revokeLease(id),
    compact: (revision) => store.compact(revision),
    size: () => store.size(),
    close: () => store.close(),
  }
}

function operationOf({ compare, success }: Transaction): [Operation, string] {
  const [op] = success
  if (op?.type === 'delete') return ['delete', op.from]
  if (op?.type === 'range') return ['get', op.from]
  const [condition] = compare
  return [condition?.target === 'mod' && condition.value === 0 ? 'create' : 'update', op?.key ?? '']
}

function operationSeries(metrics: Metrics): (operation: Operation, key: string) => OperationSeries {
  const seconds = metrics.histogram({ name: 'etcd_request_duration_seconds', help: 'How long requests to the store took, in seconds.', labels, buckets })
  const total = metrics.counter({ name: 'etcd_requests_total', help: 'Requests to the store.', labels })
  const errors = metrics.counter({ name: 'etcd_request_errors_total', help: 'Requests to the store that failed.', labels })
  const known = new Map<string, OperationSeries>()
  const resourceOf = resourcesByPrefix()
  return (operation, key) => {
    const resource = resourceOf(key)
    const name = `${operation} ${resource.resource}.${resource.group}`
    let series = known.get(name)
    if (!series) {
      const values = { operation, ...resource }
      series = { seconds: seconds.series(values), total: total.series(values), errors: errors.series(values) }
      known.set(name, series)
    }
    return series
  }
}

function eventCounter(metrics: Metrics): (batch: StoreEventBatch) => void {
  const received = metrics.counter({ name: 'apiserver_storage_events_received_total', help: 'Changes that the store reported.', labels: ['group', 'resource'] })
  const known = new Map<StoredName, CounterSeries>()
  const resourceOf = resourcesByPrefix()
  return ({ events }) => {
    for (const { kv } of events) {
      const resource = resourceOf(kv.key)
      let series = known.get(resource)
      if (!series) {
        series = received.series({ ...resource })
        known.set(resource, series)
      }
      series.inc()
    }
  }
}

interface StoredName {
  readonly group: string
  readonly resource: string
}

const other: StoredName = { group: '', resource: '' }
/** A store that other programs write to may hold any prefix. */
const mostPrefixes = 2000

/** Finds the resource of a store's key; the same resource is the same object. */
function resourcesByPrefix(): (key: string) => StoredName {
  const byPrefix = new Map<string, StoredName>()
  for (const { storage, resource } of allResources()) {
    if (storage) byPrefix.set(storagePrefix(storage), { group: storage.group, resource })
  }
  const known = new Map<string, StoredName>()
  return (key) => {
    const first = key.indexOf('/', '/registry/'.length)
    const second = key.indexOf('/', first + 1)
    const short = first < 0 ? key : key.slice(0, first)
    const long = second < 0 ? key : key.slice(0, second)
    const found = byPrefix.get(long) ?? byPrefix.get(short) ?? known.get(long)
    if (found) return found
    // Custom resources are below their group, and no built-in prefix has a dot.
    const group = short.slice('/registry/'.length)
    if (!group.includes('.') || second < 0 || known.size >= mostPrefixes) return other
    const made = { group, resource: long.slice(first + 1) }
    known.set(long, made)
    return made
  }
}
