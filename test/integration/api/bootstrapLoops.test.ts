/** The loops of the API server that run without a controller manager. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { objectMetrics } from '#apiserver/registry/objectMetrics'
import { noMetrics } from '#base/metrics'
import { clusterRoles, configMaps, endpointSlices, flowSchemas, leases, namespaces, priorityClasses, serviceCIDRs, services } from '#client/builtIn'
import { createConfigFile } from '#main/apiserver/configFile'
import { configFromOptions } from '#main/apiserver/fromOptions'
import { serverOptions } from '#main/apiserver/options/index'
import { createPrometheusMetrics } from '#main/prometheus'
import { realClock } from '#testing/realClock'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

test('EXP-10 a server without controllers has the objects that its own loops create', async () => {
  const api = await startServerWithFlags([], { config: { hostName: 'server-1' } })
  const { client } = api
  const names = async (list: Promise<{ readonly items: readonly { readonly metadata: { readonly name?: string | undefined } }[] }>) =>
    (await list).items.map(({ metadata }) => metadata.name ?? '').sort()
  try {
    assert.deepEqual(await names(client.of(namespaces).list()), ['default', 'kube-node-lease', 'kube-public', 'kube-system'])
    const service = await client.of(services).get({ namespace: 'default', name: 'kubernetes' })
    assert.equal(service.spec?.clusterIP, '10.96.0.1')
    const slice = await client.of(endpointSlices).get({ namespace: 'default', name: 'kubernetes' })
    assert.deepEqual(
      slice.endpoints?.map(({ addresses }) => addresses),
      [['192.0.2.1']],
    )
    assert.deepEqual((await client.of(serviceCIDRs).get({ name: 'kubernetes' })).spec?.cidrs, ['10.96.0.0/16'])
    assert.ok((await names(client.of(configMaps).list({ namespace: 'kube-system' }))).includes('kube-apiserver-legacy-service-account-token-tracking'))
    assert.ok((await names(client.of(leases).list({ namespace: 'kube-system' }))).some((name) => name.startsWith('apiserver-')))
    const schemas = await names(client.of(flowSchemas).list())
    for (const name of ['catch-all', 'exempt', 'probes', 'system-leader-election']) assert.ok(schemas.includes(name), name)
    const roles = await names(client.of(clusterRoles).list())
    for (const name of ['cluster-admin', 'edit', 'system:node', 'view']) assert.ok(roles.includes(name), name)
    assert.deepEqual(await names(client.of(priorityClasses).list()), ['system-cluster-critical', 'system-node-critical'])
  } finally {
    await api.close()
  }
})

test('OBS-04 the API server shows the size of its store, and how many objects each resource has', async () => {
  const api = await startServerWithFlags([])
  const metrics = createPrometheusMetrics()
  try {
    const refresh = objectMetrics(api.server.registry, api.store, metrics)
    await refresh()
    assert.match(metrics.render(), /^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} [1-9]\d*$/m)
    assert.match(metrics.render(), /^apiserver_storage_objects\{resource="namespaces"\} 4$/m)
    assert.match(metrics.render(), /^apiserver_resource_objects\{group="flowcontrol\.apiserver\.k8s\.io",resource="flowschemas"\} \d+$/m)
    await api.client.of(namespaces).create({ metadata: { name: 'more' }, spec: {} })
    await refresh()
    assert.match(metrics.render(), /^apiserver_storage_objects\{resource="namespaces"\} 5$/m)
    assert.equal(await objectMetrics(api.server.registry, api.store, noMetrics)(), undefined)
  } finally {
    await api.close()
  }
})

test('OBS-04 a server with --etcd-count-metric-poll-period=0 shows the size of its store and no counts, any other shows the present ones', async () => {
  const scraped = async (flags: readonly string[]) => {
    const api = await startServerWithFlags(flags)
    try {
      await api.client.of(namespaces).create({ metadata: { name: 'more' }, spec: {} })
      const metrics = createPrometheusMetrics()
      await objectMetrics(
        api.server.registry,
        api.store,
        metrics,
        configFromOptions(await serverOptions(flags, { file: (name) => createConfigFile(name, realClock) })),
      )()
      return metrics.render()
    } finally {
      await api.close()
    }
  }
  const without = await scraped(['--etcd-count-metric-poll-period=0'])
  assert.match(without, /^apiserver_storage_size_bytes/m)
  assert.doesNotMatch(without, /^apiserver_(storage|resource)_objects/m)
  assert.match(await scraped(['--etcd-count-metric-poll-period=1h']), /^apiserver_storage_objects\{resource="namespaces"\} 5$/m)
})
