/** topology-mode Auto: endpoints get hints for zones, and lose them when nodes or the annotation change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatTime } from '#base/time'
import { endpointSlices, events, nodes, pods, services } from '#client/builtIn'
import { createPrometheusMetrics } from '#main/prometheus'
import { realClock } from '#testing/realClock'
import { eventually, startTestCluster } from './cluster.ts'

const namespace = 'default'
// No heartbeats: nodes stay as the test sets them.
const hourMs = 3_600_000

test('CTL-12 topology-mode Auto hints zones by their CPU, says so in Events, and follows nodes and the annotation', async () => {
  const metrics = createPrometheusMetrics()
  const cluster = await startTestCluster({ metrics, nodeMonitorGracePeriodMs: hourMs, nodeStartupGracePeriodMs: hourMs })
  const { client } = cluster
  const createNode = async (zone: string) => {
    const metadata = { name: `node-${zone}`, labels: { 'topology.kubernetes.io/zone': zone } }
    await client.of(nodes).create({ metadata, spec: {} })
    const time = formatTime(realClock.now())
    const conditions = [{ type: 'Ready', status: 'True', reason: 'Test', lastHeartbeatTime: time, lastTransitionTime: time }]
    await client.of(nodes).patch({ name: metadata.name }, 'merge', { status: { conditions, allocatable: { cpu: '2' } } }, { subresource: 'status' })
  }
  const hints = async () => {
    const { items } = await client.of(endpointSlices).list({ namespace, labelSelector: 'kubernetes.io/service-name=web' })
    return items.flatMap((slice) => slice.endpoints ?? []).map((endpoint) => endpoint.hints?.forZones?.[0]?.name ?? '-')
  }
  const hinted = (...want: string[]) =>
    eventually(async () => {
      assert.deepEqual((await hints()).sort(), want)
      return true
    })
  const said = (message: string) =>
    eventually(async () => {
      const messages = (await client.of(events).list({ namespace })).items.map(({ reason, message }) => `${reason}: ${message}`)
      assert.ok(messages.includes(message), messages.join('\n'))
      return true
    })
  try {
    for (const zone of ['a', 'b']) await createNode(zone)
    const labels = { app: 'web' }
    const annotations = { 'service.kubernetes.io/topology-mode': 'Auto' }
    const service = { metadata: { namespace, name: 'web', annotations }, spec: { selector: labels, ports: [{ port: 80 }] } }
    for (const [index, zone] of ['a', 'a', 'a', 'b'].entries()) {
      const spec = { nodeName: `node-${zone}`, containers: [{ name: 'c', image: 'a' }] }
      await client.of(pods).create({ metadata: { namespace, name: `web-${index}`, labels }, spec })
    }
    await client.of(services).create(service)
    await hinted('a', 'a', 'b', 'b')
    await said('TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4')
    const scrape = metrics.render()
    assert.match(scrape, /endpointslices_changed_per_sync_count\{topology="Auto",traffic_distribution=""\} [1-9]/)

    await createNode('c')
    await hinted('-', '-', '-', '-')
    const refusal = 'Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (4 endpoints, 3 zones)'
    await said(`TopologyAwareHintsDisabled: ${refusal}, addressType: IPv4`)
    await client.of(nodes).delete({ name: 'node-c' })
    await client.of(services).patch({ namespace, name: 'web' }, 'merge', { metadata: { labels: { changed: 'yes' } } })
    await hinted('a', 'a', 'b', 'b')

    const removed = { 'service.kubernetes.io/topology-mode': null }
    await client.of(services).patch({ namespace, name: 'web' }, 'merge', { metadata: { annotations: removed } })
    await hinted('-', '-', '-', '-')
    await said('TopologyAwareHintsDisabled: Topology Aware Hints has been disabled, addressType: IPv4')
    assert.deepEqual(cluster.complaints, [])
  } finally {
    await cluster.close()
  }
})
