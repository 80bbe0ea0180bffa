/** Pod garbage collection, with the rights of the collector's own service account. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodes, pods } from '#client/builtIn'
import { eventually, startTestCluster } from './cluster.ts'

const namespace = 'default'
const containers = [{ name: 'c', image: 'a' }]

test('CTL-20 pods that were deleted before they got a node, and those of a node out of service, are deleted at once', async () => {
  const cluster = await startTestCluster({ podsRun: false, controllers: ['podgc'] })
  try {
    await cluster.manager.setEnabled('podgc', false)
    const client = cluster.client.of(pods)
    await cluster.client.of(nodes).create({ metadata: { name: 'dead' }, spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] } })
    // A finalizer keeps them in sight.
    const finalizers = ['example.com/look']
    for (const [name, nodeName] of [
      ['unscheduled', ''],
      ['stuck', 'dead'],
      ['living', 'dead'],
    ] as const) {
      await client.create({ metadata: { namespace, name, finalizers }, spec: { containers, ...(nodeName ? { nodeName } : {}) } })
    }
    await client.delete({ namespace, name: 'unscheduled' })
    await client.delete({ namespace, name: 'stuck' })
    // The collector looks when it starts, and it sees all that was there before.
    await cluster.manager.setEnabled('podgc', true)
    for (const name of ['unscheduled', 'stuck']) {
      await eventually(async () => {
        const { metadata, status } = await client.get({ namespace, name })
        assert.deepEqual([status?.phase, metadata.deletionGracePeriodSeconds], ['Failed', 0])
        return true
      })
    }
    assert.notEqual((await client.get({ namespace, name: 'living' })).status?.phase, 'Failed')
    assert.deepEqual(cluster.complaints, [])
  } finally {
    await cluster.close()
  }
})

test('CTL-20 of pods that have ended the oldest go when there are too many, evicted ones first', async () => {
  const cluster = await startTestCluster({ podsRun: false, controllers: ['-podgc'], terminatedPodGcThreshold: 2 })
  try {
    const client = cluster.client.of(pods)
    for (const name of ['a', 'b', 'c', 'd']) {
      await client.create({ metadata: { namespace, name }, spec: { containers } })
      const status = { phase: 'Failed', ...(name === 'd' ? { reason: 'Evicted' } : {}) }
      await client.patch({ namespace, name }, 'merge', { status }, { subresource: 'status' })
    }
    await cluster.manager.setEnabled('podgc', true)
    const names = async () => (await client.list({ namespace })).items.map(({ metadata }) => metadata.name)
    await eventually(async () => {
      assert.deepEqual(await names(), ['b', 'c'])
      return true
    })
  } finally {
    await cluster.close()
  }
})
