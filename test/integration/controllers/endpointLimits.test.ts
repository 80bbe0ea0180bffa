/** Flags set the number of endpoints in a slice, and how long changes are batched. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointSlices, endpoints, pods, services } from '#client/builtIn'
import { eventually, startTestCluster } from './cluster.ts'

const namespace = 'default'

test('CTL-12 slices have as many endpoints as they may, mirrored ones too, also when changes are gathered', async () => {
  const cluster = await startTestCluster({ endpoints: { maxPerSlice: 2, maxPerSubset: 3, sliceBatchMs: 20, batchMs: 20, mirrorBatchMs: 20 } })
  const { client } = cluster
  const sizes = async (service: string) => {
    const { items } = await client.of(endpointSlices).list({ namespace, labelSelector: `kubernetes.io/service-name=${service}` })
    return items.map((slice) => slice.endpoints?.length ?? 0).sort((a, b) => a - b)
  }
  try {
    const labels = { app: 'web' }
    await client.of(services).create({ metadata: { namespace, name: 'web' }, spec: { selector: labels, ports: [{ port: 80 }] } })
    for (const name of ['a', 'b', 'c'])
      await client.of(pods).create({ metadata: { namespace, name, labels }, spec: { nodeName: 'n', containers: [{ name: 'c', image: 'a' }] } })
    await eventually(async () => {
      assert.deepEqual(await sizes('web'), [1, 2])
      return true
    })
    await eventually(async () => (await client.of(endpoints).get({ namespace, name: 'web' })).subsets?.[0]?.addresses?.length === 3)
    await client.of(services).create({ metadata: { namespace, name: 'outside' }, spec: { ports: [{ port: 80 }] } })
    const addresses = [1, 2, 3, 4].map((last) => ({ ip: `192.0.2.${last}` }))
    await client.of(endpoints).create({ metadata: { namespace, name: 'outside' }, subsets: [{ addresses, ports: [{ port: 80 }] }] })
    await eventually(async () => {
      assert.deepEqual(await sizes('outside'), [3])
      return true
    })
  } finally {
    await cluster.close()
  }
})
