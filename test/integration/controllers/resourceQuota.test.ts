/** The status of quotas follows what is there, custom resources included. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configMaps, customResourceDefinitions, namespaced, pods, resourceQuotas, services } from '#client/builtIn'
import { eventually, startTestCluster } from './cluster.ts'

const namespace = 'default'
const widgets = namespaced<{ apiVersion: string; kind: string; metadata: { name?: string; namespace?: string } }>('example.com', 'v1', 'widgets', 'Widget')

test('CTL-18 usage follows creations, changes and deletions, and limits follow the spec', async () => {
  const cluster = await startTestCluster({ podsRun: false, admission: true })
  const { client } = cluster
  try {
    await client.of(customResourceDefinitions).create({
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    })
    await eventually(() => client.of(widgets).create({ metadata: { namespace, name: 'w' } }))
    // A restarted controller reads discovery at once, so it sees the custom resource without waiting for its next interval.
    await cluster.manager.setEnabled('resourcequota-controller', false)
    await cluster.manager.setEnabled('resourcequota-controller', true)
    const hard = { pods: '5', 'requests.cpu': '2', 'services.nodeports': '1', 'count/configmaps': '9', 'count/widgets.example.com': '3' }
    await client.of(resourceQuotas).create({ metadata: { namespace, name: 'q' }, spec: { hard } })
    const status = async () => (await client.of(resourceQuotas).get({ namespace, name: 'q' })).status
    const used = (name: string, want: string) => eventually(async () => (await status())?.used?.[name] === want)
    await used('count/widgets.example.com', '1')
    const there = (await client.of(configMaps).list({ namespace })).items.length
    await used('count/configmaps', String(there))
    assert.deepEqual((await status())?.hard, hard)
    const containers = [{ name: 'c', image: 'a', resources: { requests: { cpu: '250m' } } }]
    for (const name of ['a', 'b']) await client.of(pods).create({ metadata: { namespace, name }, spec: { containers } })
    await used('pods', '2')
    await used('requests.cpu', '500m')
    await client.of(pods).patch({ namespace, name: 'a' }, 'merge', { status: { phase: 'Succeeded' } }, { subresource: 'status' })
    await used('pods', '1')
    await client.of(pods).delete({ namespace, name: 'b' }, { gracePeriodSeconds: 0 })
    await used('requests.cpu', '0')
    await client.of(services).create({ metadata: { namespace, name: 's' }, spec: { type: 'NodePort', ports: [{ port: 80 }] } })
    await used('services.nodeports', '1')
    await client.of(services).patch({ namespace, name: 's' }, 'merge', { spec: { type: 'ClusterIP', ports: [{ port: 80, nodePort: null }] } })
    await used('services.nodeports', '0')
    await client.of(widgets).delete({ namespace, name: 'w' })
    await used('count/widgets.example.com', '0')
    await client.of(resourceQuotas).patch({ namespace, name: 'q' }, 'merge', { spec: { hard: { pods: '7' } } })
    await eventually(async () => (await status())?.hard?.pods === '7')
    assert.deepEqual(cluster.complaints, [])
  } finally {
    await cluster.close()
  }
})
