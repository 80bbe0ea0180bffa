/** An autoscaler with metrics of an adapter: a server behind two APIServices answers custom.metrics.k8s.io and external.metrics.k8s.io. */
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { MetricSpec } from '#api/gen/types/autoscaling.v2'
import { apiServices, deployments, events, horizontalPodAutoscalers, services } from '#client/builtIn'
import { startCluster, type TestCluster } from '#testing/cluster'
import { testCertificates } from '#testing/testCertificates'

const namespace = 'default'
const custom = { group: 'custom.metrics.k8s.io', version: 'v1beta2' }
const external = { group: 'external.metrics.k8s.io', version: 'v1beta1' }
const timestamp = '2026-01-01T00:00:00Z'
const one = { describedObject: { kind: 'Service', name: 'front' }, metric: { name: 'hits' }, timestamp, value: '90' }
const items: Readonly<Record<string, readonly object[]>> = {
  [`/apis/custom.metrics.k8s.io/v1beta2/namespaces/${namespace}/services/front/hits`]: [one],
  [`/apis/external.metrics.k8s.io/v1beta1/namespaces/${namespace}/queue?labelSelector=kind%3Dmail`]: ['25', '15'].map((value) => ({
    metricName: 'queue',
    metricLabels: {},
    timestamp,
    value,
  })),
}

let cluster: TestCluster
let stop: () => Promise<void>
before(async () => {
  const { cert, key } = await testCertificates('CN=adapter')
  const adapter = createServer({ cert, key }, ({ url = '' }, response) => {
    const version = [custom, external].find(({ group, version }) => url.startsWith(`/apis/${group}/${version}`))
    const found = items[url]
    const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: `${version?.group}/${version?.version}`, resources: [] }
    const body = found ? { kind: 'List', apiVersion: list.groupVersion, metadata: {}, items: found } : list
    const isKnown = found !== undefined || /^\/apis\/[^/]+\/[^/]+$/.test(url)
    response.writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => adapter.listen(0, '127.0.0.1', resolve))
  const { port } = adapter.address() as AddressInfo
  cluster = await startCluster({ clock: 'real', controllerOptions: { autoscaler: { syncPeriodMs: 100 } } })
  const { client } = cluster
  await client.of(services).create({ metadata: { namespace, name: 'adapter' }, spec: { type: 'ExternalName', externalName: 'localhost' } })
  for (const { group, version } of [custom, external]) {
    const service = { namespace, name: 'adapter', port }
    const spec = { group, version, service, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true }
    await client.of(apiServices).create({ metadata: { name: `${version}.${group}` }, spec })
  }
  stop = async () => {
    await cluster.close()
    adapter.closeAllConnections()
    await new Promise((resolve) => adapter.close(resolve))
  }
})
after(() => stop())

const cases: readonly [name: string, metric: MetricSpec, replicas: number, event: string][] = [
  [
    'object',
    {
      type: 'Object',
      object: {
        describedObject: { apiVersion: 'v1', kind: 'Service', name: 'front' },
        metric: { name: 'hits' },
        target: { type: 'AverageValue', averageValue: '30' },
      },
    },
    3,
    'external metric hits(nil) above target',
  ],
  [
    'external',
    {
      type: 'External',
      external: { metric: { name: 'queue', selector: { matchLabels: { kind: 'mail' } } }, target: { type: 'AverageValue', averageValue: '10' } },
    },
    4,
    'external metric queue(&LabelSelector{MatchLabels:map[string]string{kind: mail,},MatchExpressions:[]LabelSelectorRequirement{},}) above target',
  ],
]
for (const [name, metric, replicas, reason] of cases)
  test(`AUT-01 AUT-02 an autoscaler sets the replicas by a metric of type ${metric.type}, which an adapter serves`, async () => {
    const { client } = cluster
    const template = { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'a:1' }] } }
    await client.of(deployments).create({ metadata: { namespace, name }, spec: { replicas: 1, selector: { matchLabels: { app: name } }, template } })
    const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name }
    await client.of(horizontalPodAutoscalers).create({ metadata: { namespace, name }, spec: { maxReplicas: 9, scaleTargetRef, metrics: [metric] } })
    await cluster.until(async () => (await client.of(deployments).get({ namespace, name })).spec.replicas === replicas, 60_000)
    const text = `New size: ${replicas}; reason: ${reason}`
    await cluster.until(async () => (await client.of(events).list({ namespace })).items.some(({ message }) => message === text), 60_000)
    await cluster.until(async () => {
      const { status } = await client.of(horizontalPodAutoscalers).get({ namespace, name })
      return status?.currentMetrics?.[0]?.type === metric.type
    }, 60_000)
  })
