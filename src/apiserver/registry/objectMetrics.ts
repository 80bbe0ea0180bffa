/** The sizes of the store and of its resources (L3), read at a scrape. Upstream: apiserver/pkg/storage/etcd3/metrics (v1.36). */
import { type Gauge, type Metrics, noMetrics } from '#base/metrics'
import type { Store } from '#store/store'
import type { Registry } from './registry.ts'

export interface ObjectMetricsOptions {
  /** Default true; false: there are no metrics of counts. */
  readonly countsObjects?: boolean | undefined
}

/** @returns what brings the metrics up to date; it never rejects */
export function objectMetrics(
  registry: Pick<Registry, 'all'>,
  store: Pick<Store, 'size'>,
  metrics: Metrics,
  { countsObjects = true }: ObjectMetricsOptions = {},
): () => Promise<void> {
  if (metrics === noMetrics) return async () => {}
  const bytes = metrics.gauge({ name: 'apiserver_storage_size_bytes', help: 'Bytes that the store takes on its disk.', labels: ['storage_cluster_id'] })
  const count = countsObjects ? objectCounts(registry, metrics) : () => {}
  return async () => {
    count()
    const size = await store.size().catch(() => undefined)
    if (size) bytes.set(size.totalBytes, { storage_cluster_id: storageClusterId })
  }
}

/** Upstream asks etcd once in a while. Here the watch caches know the counts, at no cost, so that each scrape has the present ones. */
function objectCounts(registry: Pick<Registry, 'all'>, metrics: Metrics): () => void {
  const byName = resourceGauge(
    metrics.gauge({ name: 'apiserver_storage_objects', help: 'Stored objects by resource.', labels: ['resource'] }),
    ({ group, resource }) => ({ resource: group === '' ? resource : `${resource}.${group}` }),
  )
  const byGroup = resourceGauge(
    metrics.gauge({ name: 'apiserver_resource_objects', help: 'Stored objects by group and resource.', labels: ['group', 'resource'] }),
    ({ group, resource }) => ({ group, resource }),
  )
  return () => {
    const stored = new Set(registry.all().map((one) => one.stored))
    const counts = [...stored].map(({ group, resource, cache }) => ({ group, resource, count: cache.size }))
    byName(counts)
    byGroup(counts)
  }
}

/** Upstream's for the storage that every resource shares. */
const storageClusterId = 'etcd-0'

interface ResourceCount {
  readonly group: string
  readonly resource: string
  readonly count: number
}

/** Sets a series for each resource, and removes those of resources that are gone. */
function resourceGauge(gauge: Gauge, labelsOf: (of: ResourceCount) => Record<string, string>): (counts: readonly ResourceCount[]) => void {
  let shown = new Map<string, Record<string, string>>()
  return (counts) => {
    const now = new Map(counts.map((one) => [`${one.resource}.${one.group}`, labelsOf(one)]))
    for (const [name, labels] of shown) if (!now.has(name)) gauge.remove(labels)
    for (const one of counts) gauge.set(one.count, labelsOf(one))
    shown = now
  }
}
