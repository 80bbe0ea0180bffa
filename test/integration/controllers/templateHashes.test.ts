/** Names of ReplicaSets and ControllerRevisions follow from the stored template, with all defaults: v1.36.3 computes the same for this template. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodTemplateSpec } from '#api/gen/types/core.v1'
import { controllerRevisions, daemonSets, deployments, replicaSets, statefulSets } from '#client/builtIn'
import { startCluster } from '#testing/cluster'

const namespace = 'default'
const labels = { app: 'web', '10': 'a', '2': 'b' }
const template: PodTemplateSpec = {
  metadata: { labels, annotations: { note: '<a & b>' } },
  spec: {
    nodeSelector: { none: 'such' },
    volumes: [
      { name: 'scratch', emptyDir: { sizeLimit: '1.5Gi' } },
      { name: 'info', downwardAPI: { items: [{ path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'limits.cpu' } }] } },
    ],
    containers: [
      {
        name: 'main',
        image: 'example.com/web',
        env: [{ name: 'EMPTY', value: '' }],
        ports: [{ containerPort: 80 }],
        resources: { limits: { cpu: '0.5', memory: '128Mi' } },
        livenessProbe: { httpGet: { port: 80 } },
      },
    ],
  },
}
const selector = { matchLabels: { app: 'web' } }

test('CTL-04 CTL-05 CTL-06 ReplicaSets and revisions get the names that upstream gives them', async () => {
  const cluster = await startCluster({ nodes: 1 })
  try {
    const { client } = cluster
    const metadata = { namespace, name: 'web' }
    await client.of(deployments).create({ metadata, spec: { replicas: 0, selector, template } })
    await client.of(statefulSets).create({ metadata, spec: { replicas: 0, serviceName: 'web', selector, template } })
    await client.of(daemonSets).create({ metadata: { namespace, name: 'daemon' }, spec: { selector, template } })
    await cluster.until(async () => (await client.of(controllerRevisions).list({ namespace })).items.length === 2)
    await cluster.until(async () => (await client.of(replicaSets).list({ namespace })).items.length === 1)
    const revisions = (await client.of(controllerRevisions).list({ namespace })).items
    const [replicaSet] = (await client.of(replicaSets).list({ namespace })).items
    assert.deepEqual(
      [replicaSet?.metadata.name, ...revisions.map(({ metadata: { name } }) => name).sort()],
      ['web-6c56476cb', 'daemon-6c56476cb', 'web-7bcf7c66cc'],
    )
  } finally {
    await cluster.close()
  }
})
