/** What is told of the zones (L3). Upstream: pkg/controller/nodelifecycle/metrics.go (v1.36). */
import type { Metrics } from '#base/metrics'
import type { ZoneCensus } from './zones.ts'

export interface ZoneMetrics {
  observe(zones: ReadonlyMap<string, ZoneCensus>): void
  evicted(zone: string): void
}

export function createZoneMetrics(metrics: Metrics): ZoneMetrics {
  const labels = ['zone']
  const gauge = (name: string, help: string) => metrics.gauge({ name: `node_collector_${name}`, help, labels })
  const size = gauge('zone_size', 'Gauge measuring number of registered Nodes per zones.')
  const health = gauge('zone_health', 'Gauge measuring percentage of healthy nodes per zone.')
  const unhealthy = gauge('unhealthy_nodes_in_zone', 'Gauge measuring number of not Ready Nodes per zones.')
  const evictions = metrics.counter({
    name: 'node_collector_evictions_total',
    help: 'Number of Node evictions that happened since current instance of NodeController started.',
    labels,
  })
  let known = new Set<string>()
  return {
    observe(zones) {
      for (const zone of known) if (!zones.has(zone)) set(zone, { size: 0, notReady: 0 })
      for (const [zone, census] of zones) set(zone, census)
      known = new Set(zones.keys())
    },
    evicted: (zone) => evictions.inc({ zone }),
  }

  function set(zone: string, census: ZoneCensus): void {
    size.set(census.size, { zone })
    health.set(census.size === 0 ? 100 : (100 * (census.size - census.notReady)) / census.size, { zone })
    unhealthy.set(census.notReady, { zone })
  }
}
