/** The service proxy's metrics (L3), by upstream's names, labels and buckets. Upstream: pkg/proxy/metrics/metrics.go (v1.36). */
import { exponentialBuckets, type Metrics } from '#base/metrics'
import type { Family } from './model.ts'

const syncBuckets = exponentialBuckets(0.001, 2, 15)
const linear = (start: number, width: number, count: number) => Array.from({ length: count }, (_, i) => start + i * width)
const programmingBuckets = [...linear(0.25, 0.25, 2), ...linear(1, 1, 59), ...linear(60, 5, 12), ...linear(120, 30, 7)]
const byFamily = ['ip_family']

export type ProxyMetrics = ReturnType<typeof createProxyMetrics>

/** The metrics of every mode. */
export function createProxyMetrics(metrics: Metrics) {
  const counter = (name: string, help: string) => metrics.counter({ name: `kubeproxy_${name}`, help })
  const gauge = (name: string, help: string, labels: readonly string[] = []) => metrics.gauge({ name: `kubeproxy_${name}`, help, labels })
  const histogram = (name: string, help: string, buckets = syncBuckets) => metrics.histogram({ name: `kubeproxy_${name}`, help, labels: byFamily, buckets })
  return {
    syncSeconds: histogram('sync_proxy_rules_duration_seconds', 'Time to bring the rules of a family up to date, also when it failed.'),
    lastSync: gauge('sync_proxy_rules_last_timestamp_seconds', 'When the rules of a family were last brought up to date.', byFamily),
    lastQueued: gauge('sync_proxy_rules_last_queued_timestamp_seconds', 'When a change of the rules was last queued.', byFamily),
    programmingSeconds: histogram(
      'network_programming_duration_seconds',
      'Time from the change of a Service or pod until the rules of its endpoints are in the kernel, by the time that the EndpointSlice names.',
      programmingBuckets,
    ),
    endpointChanges: counter('sync_proxy_rules_endpoint_changes_total', 'Changes of EndpointSlices that the proxy has seen.'),
    endpointChangesPending: gauge('sync_proxy_rules_endpoint_changes_pending', 'Changes of EndpointSlices that no rules were made of yet.'),
    serviceChanges: counter('sync_proxy_rules_service_changes_total', 'Changes of Services that the proxy has seen.'),
    serviceChangesPending: gauge('sync_proxy_rules_service_changes_pending', 'Services whose changes no rules were made of yet.'),
    noLocalEndpoints: gauge(
      'sync_proxy_rules_no_local_endpoints_total',
      'Service ports with the traffic policy Local and endpoints, none of which is on this node.',
      [...byFamily, 'traffic_policy'],
    ),
    flowSeconds: histogram('conntrack_reconciler_sync_duration_seconds', 'Time to delete flows that changed rules made stale.'),
    flowsDeleted: metrics.counter({
      name: 'kubeproxy_conntrack_reconciler_deleted_entries_total',
      help: 'Flows that changed rules made stale and that were deleted.',
      labels: byFamily,
    }),
  }
}

/** Metrics of `/healthz` and `/livez`. */
export function createHealthMetrics(metrics: Metrics) {
  const answers = (page: string) =>
    metrics.counter({ name: `kubeproxy_proxy_${page}_total`, help: `Answers of /${page} of the proxy, by status code.`, labels: ['code'] })
  return { healthz: answers('healthz'), livez: answers('livez') }
}

/** Transactions of nft that failed. */
export function createNftablesMetrics(metrics: Metrics, families: readonly Family[]) {
  const failures = metrics.counter({
    name: 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total',
    help: 'Attempts to bring the table of nftables up to date that failed.',
    labels: byFamily,
  })
  for (const ip_family of families) failures.inc({ ip_family }, 0)
  return { failures }
}

/** iptables-restore of whole sets of rules. */
export function createRestoreMetrics(metrics: Metrics, families: readonly Family[]) {
  const failures = metrics.counter({
    name: 'kubeproxy_sync_proxy_rules_iptables_restore_failures_total',
    help: 'Calls of iptables-restore with all rules that failed.',
    labels: byFamily,
  })
  for (const ip_family of families) failures.inc({ ip_family }, 0)
  return { failures }
}

export function createIptablesMetrics(metrics: Metrics, families: readonly Family[]) {
  const seconds = (name: string, help: string) =>
    metrics.histogram({ name: `kubeproxy_sync_${name}_proxy_rules_duration_seconds`, help, labels: byFamily, buckets: syncBuckets })
  const rules = (name: string, help: string) => metrics.gauge({ name: `kubeproxy_sync_proxy_rules_iptables_${name}`, help, labels: [...byFamily, 'table'] })
  const partialFailures = metrics.counter({
    name: 'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total',
    help: 'Calls of iptables-restore with changed rules alone that failed.',
    labels: byFamily,
  })
  for (const ip_family of families) partialFailures.inc({ ip_family }, 0)
  return {
    ...createRestoreMetrics(metrics, families),
    partialFailures,
    fullSeconds: seconds('full', 'Time to write all rules of a family.'),
    partialSeconds: seconds('partial', 'Time to write the changed rules of a family.'),
    rules: rules('total', 'Rules of the proxy in a table.'),
    written: rules('last', 'Rules that the last change wrote to a table.'),
  }
}
