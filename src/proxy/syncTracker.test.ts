import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { VirtualClock } from '#base/virtualClock'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { ProxyHealth } from './health.ts'
import type { Family, FamilyModel, ServiceRule } from './model.ts'
import { createSyncTracker } from './syncTracker.ts'

function aSlice(address: string, triggeredMs: number, family: Family = 'IPv4'): EndpointSlice {
  return {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' },
    metadata: {
      name: 'web-1',
      namespace: 'd',
      labels: { 'kubernetes.io/service-name': 'web' },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': new Date(triggeredMs).toISOString() },
    },
    addressType: family,
    endpoints: [{ addresses: [address] }],
    ports: [{ port: 80 }],
  }
}

const aModel = (family: Family, rules: readonly Partial<ServiceRule>[] = []): FamilyModel => ({
  family,
  rules: rules as readonly ServiceRule[],
  clusterCidrs: [],
  serviceCidrs: [],
})

async function world() {
  const clock = new VirtualClock()
  const metrics = createRecordedMetrics()
  const health = new ProxyHealth(clock, 60_000)
  health.serves(['IPv4', 'IPv6'])
  const tracker = createSyncTracker({ clock, metrics, health, families: ['IPv4', 'IPv6'] })
  await clock.advance(1000)
  const value = (name: string) => metrics.values.get(`kubeproxy_${name}`)
  return { clock, health, tracker, value }
}

test('OBS-13 changes of Services and EndpointSlices are counted, and pending until a model holds them', async () => {
  const { clock, tracker, value } = await world()
  tracker.serviceChanged('d/web')
  tracker.serviceChanged('d/web')
  tracker.serviceChanged('d/db')
  tracker.sliceChanged(undefined, aSlice('10.0.0.1', clock.now()))
  assert.equal(value('sync_proxy_rules_service_changes_total'), 3)
  assert.equal(value('sync_proxy_rules_service_changes_pending'), 2)
  assert.equal(value('sync_proxy_rules_endpoint_changes_total'), 1)
  assert.equal(value('sync_proxy_rules_endpoint_changes_pending'), 1)
  assert.equal(value('sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"}'), clock.now() / 1000)
  tracker.modelMade()
  assert.equal(value('sync_proxy_rules_service_changes_pending'), 0)
  assert.equal(value('sync_proxy_rules_endpoint_changes_pending'), 0)
})

test('OBS-13 an update of a slice that changes no endpoint and no port is no pending change', async () => {
  const { clock, tracker, value } = await world()
  tracker.sliceChanged(aSlice('10.0.0.1', clock.now() - 5), aSlice('10.0.0.1', clock.now()))
  assert.equal(value('sync_proxy_rules_endpoint_changes_total'), 1)
  assert.equal(value('sync_proxy_rules_endpoint_changes_pending'), undefined)
})

test('OBS-13 the network programming latency is measured once per change, for its family, when the rules are applied', async () => {
  const { clock, tracker, value } = await world()
  const measured = (family: Family) => value(`network_programming_duration_seconds{ip_family="${family}"}`)
  tracker.sliceChanged(undefined, aSlice('10.0.0.1', clock.now()))
  tracker.ended(aModel('IPv4'), 0.1, false)
  assert.equal(measured('IPv4'), undefined, 'no model holds the change yet')
  tracker.modelMade()
  tracker.ended(aModel('IPv4'), 0.1, true)
  assert.equal(measured('IPv4'), undefined, 'the kernel does not have the rules')
  tracker.modelMade()
  tracker.ended(aModel('IPv4'), 0.1, false)
  tracker.ended(aModel('IPv6'), 0.1, false)
  assert.equal(measured('IPv4'), 1)
  assert.equal(measured('IPv6'), undefined)
  tracker.ended(aModel('IPv4'), 0.1, false)
  assert.equal(measured('IPv4'), 1)
  assert.equal(value('sync_proxy_rules_duration_seconds{ip_family="IPv4"}'), 4)
  assert.equal(value('sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}'), clock.now() / 1000)
})

test('OBS-13 changes from before the proxy’s start and slices that are gone have no network programming latency', async () => {
  const { clock, tracker, value } = await world()
  tracker.sliceChanged(undefined, aSlice('10.0.0.1', clock.now() - 10_000))
  tracker.sliceChanged(undefined, aSlice('10.0.0.2', clock.now()))
  tracker.sliceChanged(aSlice('10.0.0.2', clock.now()), undefined)
  tracker.modelMade()
  tracker.ended(aModel('IPv4'), 0.1, false)
  assert.equal(value('network_programming_duration_seconds{ip_family="IPv4"}'), undefined)
})

test('OBS-13 service ports with the policy Local whose endpoints are all on other nodes are counted by policy', async () => {
  const { tracker, value } = await world()
  const endpoint = { ip: '10.0.0.1', port: 80, isLocal: false }
  const remote = { clusterEndpoints: [endpoint], localEndpoints: [], internalPolicyLocal: false, externalPolicyLocal: false }
  const rules = [
    { ...remote, internalPolicyLocal: true },
    { ...remote, externalPolicyLocal: true },
    { ...remote, externalPolicyLocal: true },
    { ...remote, externalPolicyLocal: true, localEndpoints: [endpoint] },
    { ...remote, internalPolicyLocal: true, clusterEndpoints: [] },
  ]
  tracker.ended(aModel('IPv4', rules), 0.1, false)
  assert.equal(value('sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"}'), 1)
  assert.equal(value('sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"}'), 2)
})

test('OBS-13 deleted flows are counted, and how long that took', async () => {
  const { tracker, value } = await world()
  tracker.flowsDeleted('IPv6', 3, 0.01)
  assert.equal(value('conntrack_reconciler_deleted_entries_total{ip_family="IPv6"}'), 3)
  assert.equal(value('conntrack_reconciler_sync_duration_seconds{ip_family="IPv6"}'), 1)
})

test('OBS-13 times of changes are kept for the families that are served, a hundred for each Service that fails to be applied', async () => {
  const clock = new VirtualClock()
  const metrics = createRecordedMetrics()
  const tracker = createSyncTracker({ clock, metrics, health: new ProxyHealth(clock, 60_000), families: ['IPv4'] })
  await clock.advance(1000)
  for (let n = 0; n < 300; n++) {
    tracker.sliceChanged(undefined, aSlice(`10.0.0.${n % 250}`, clock.now()))
    tracker.sliceChanged(undefined, aSlice('fd00::1', clock.now(), 'IPv6'))
    tracker.modelMade()
    tracker.ended(aModel('IPv4'), 0.001, true)
  }
  tracker.ended(aModel('IPv4'), 0.001, false)
  const measured = (family: Family) => metrics.values.get(`kubeproxy_network_programming_duration_seconds{ip_family="${family}"}`)
  assert.equal(measured('IPv4'), 100)
  tracker.ended(aModel('IPv6'), 0.001, false)
  assert.equal(measured('IPv6'), undefined)
})
