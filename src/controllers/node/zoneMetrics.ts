/** Metrics of the zones (L3). Upstream: pkg/controller/nodelifecycle/metrics.go (v1.36). */
import type { Clock } from '#base/clock'
import { exponentialBuckets, type Metrics } from '#base/metrics'
import type { ZoneCensus } from './zones.ts'

export interface ZoneMetrics {
  observe(zones: ReadonlyMap<string, ZoneCensus>): void
  evicted(zone: string): void
  /** Measures how long it takes to look at one node, or at all. */
  timed<T>(what: 'node' | 'all', look: () => Promise<T>): Promise<T>
}

export function createZoneMetrics(metrics: Metrics, clock: Clock): ZoneMetrics {
  const labels = ['zone']
  const gauge = (name: string, help: string) => metrics.gauge({ name: `node_collector_${name}`, help, labels })
  const size = gauge('zone_size', 'How many nodes each zone has.')
  const health = gauge('zone_health', 'How many of a hundred nodes of a zone are well.')
  const unhealthy = gauge('unhealthy_nodes_in_zone', 'How many nodes of each zone are not ready.')
  const evictions = metrics.counter({
    name: 'node_collector_evictions_total',
    help: 'How many nodes this controller has evicted the pods of.',
    labels,
  })
  const nodeTime = metrics.histogram({
    name: 'node_collector_update_node_health_duration_seconds',
    help: 'How long a look at one node took, in seconds.',
    buckets: exponentialBuckets(0.001, 4, 8),
  })
  const allTime = metrics.histogram({
    name: 'node_collector_update_all_nodes_health_duration_seconds',
    help: 'How long a look at all nodes took, in seconds.',
    buckets: exponentialBuckets(0.01, 4, 8),
  })
  let known = new Set<string>()
  return {
    observe(zones) {
      for (const zone of known) if (!zones.has(zone)) set(zone, { size: 0, notReady: 0 })
      for (const [zone, census] of zones) set(zone, census)
      known = new Set(zones.keys())
    },
    evicted: (zone) => evictions.inc({ zone }),
    async timed(what, look) {
      const startMs = clock.monotonicMs()
      const result = await look()
      const times = what === 'node' ? nodeTime : allTime
      times.observe((clock.monotonicMs() - startMs) / 1000)
      return result
    },
  }

  function set(zone: string, census: ZoneCensus): void {
    size.set(census.size, { zone })
    health.set(census.size === 0 ? 100 : (100 * (census.size - census.notReady)) / census.size, { zone })
    unhealthy.set(census.notReady, { zone })
  }
}
