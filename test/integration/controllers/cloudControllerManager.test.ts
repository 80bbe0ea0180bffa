/** A cloud controller manager of another party: it initializes nodes with the rights that upstream's role gives, and pods wait for it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodes, pods } from '#client/builtIn'
import { startCluster } from '#testing/cluster'

const uninitialized = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' } as const
const namespace = 'default'

test('CTL-23 a pod waits for a node that the cloud controller manager has not initialized, and runs there once it has its providerID and no taint', async () => {
  await using cluster = await startCluster({ nodes: [{ name: 'n1', taints: [uninitialized] }] })
  const cloud = cluster.client
  await cloud.of(pods).create({ metadata: { namespace, name: 'waiting' }, spec: { containers: [{ name: 'c', image: 'a' }] } })
  const pod = () => cloud.of(pods).get({ namespace, name: 'waiting' })
  const condition = async () => (await pod()).status?.conditions?.find(({ type }) => type === 'PodScheduled')
  await cluster.until(async () => (await condition())?.reason === 'Unschedulable')
  assert.match((await condition())?.message ?? '', /untolerated taint/)
  // As the cloud-node-controller does it: addresses by the status, then provider and labels, then the taint.
  const addresses = [{ type: 'InternalIP', address: '192.0.2.9' }]
  await cloud.of(nodes).patch({ name: 'n1' }, 'strategic', { status: { addresses } }, { subresource: 'status' })
  const labels = { 'topology.kubernetes.io/zone': 'z', 'node.kubernetes.io/instance-type': 'small' }
  await cloud.of(nodes).patch({ name: 'n1' }, 'merge', { metadata: { labels }, spec: { providerID: 'other://z/n1' } })
  const { spec } = await cloud.of(nodes).get({ name: 'n1' })
  await cloud.of(nodes).patch({ name: 'n1' }, 'merge', { spec: { taints: spec?.taints?.filter(({ key }) => key !== uninitialized.key) ?? [] } })
  await cluster.until(async () => (await pod()).status?.phase === 'Running')
  const made = await cloud.of(nodes).get({ name: 'n1' })
  assert.deepEqual([made.spec?.providerID, made.metadata.labels?.['topology.kubernetes.io/zone'], made.spec?.taints ?? []], ['other://z/n1', 'z', []])
})
