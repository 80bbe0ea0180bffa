/** Service ranges with their controller, under the rights of its own service account. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serviceCIDRs, services } from '#client/builtIn'
import { eventually, startTestCluster } from './cluster.ts'

test('SVC-01 a service range becomes ready, and stays while an address of it is in use', async () => {
  const cluster = await startTestCluster()
  try {
    const ranges = cluster.client.of(serviceCIDRs)
    const ready = async (name: string) => (await ranges.get({ name })).status?.conditions?.find(({ type }) => type === 'Ready')
    await ranges.create({ metadata: { name: 'more' }, spec: { cidrs: ['10.99.0.0/24'] } })
    for (const name of ['kubernetes', 'more']) await eventually(async () => (await ready(name))?.status === 'True')
    assert.deepEqual((await ranges.get({ name: 'more' })).metadata.finalizers, ['networking.k8s.io/service-cidr-finalizer'])
    await cluster.client.of(services).create({ metadata: { namespace: 'default', name: 'web' }, spec: { clusterIP: '10.99.0.7', ports: [{ port: 80 }] } })
    await ranges.delete({ name: 'more' })
    const condition = await eventually(async () => {
      const found = await ready('more')
      return found?.status === 'False' && found
    })
    assert.deepEqual(
      [condition.reason, condition.message],
      ['Terminating', 'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR'],
    )
    assert.deepEqual(cluster.complaints, [])
  } finally {
    await cluster.close()
  }
})
