/** ReplicationControllers under the rights of their own service account. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPodActive } from '#api/helpers/pods'
import { pods, replicationControllers, resourceQuotas, serviceAccounts } from '#client/builtIn'
import { eventually, startTestCluster } from './cluster.ts'

const namespace = 'default'
const labels = { app: 'old' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'a' }] } }

test('CTL-02 a replication controller scales, adopts and releases, and reports a quota that stops it', async () => {
  const cluster = await startTestCluster({ admission: true })
  try {
    const controllers = cluster.client.of(replicationControllers)
    const podClient = cluster.client.of(pods)
    const owned = async () => {
      const { items } = await podClient.list({ namespace, labelSelector: 'app=old' })
      return items.filter((pod) => isPodActive(pod) && pod.metadata.ownerReferences?.[0]?.kind === 'ReplicationController')
    }
    const status = async () => (await controllers.get({ namespace, name: 'old' })).status
    await eventually(() => cluster.client.of(serviceAccounts).get({ namespace, name: 'default' }))
    const { metadata: orphan } = await podClient.create({ metadata: { namespace, name: 'orphan', labels }, spec: template.spec })
    await controllers.create({ metadata: { namespace, name: 'old' }, spec: { replicas: 3, selector: labels, template } })
    await eventually(async () => (await status())?.readyReplicas === 3 && (await owned()).length === 3)
    assert.equal(
      (await owned()).some(({ metadata }) => metadata.uid === orphan.uid),
      true,
    )
    assert.deepEqual([(await status())?.fullyLabeledReplicas, (await status())?.availableReplicas], [3, 3])

    await podClient.patch({ namespace, name: 'orphan' }, 'merge', { metadata: { labels: { app: 'free' } } })
    await eventually(async () => (await podClient.get({ namespace, name: 'orphan' })).metadata.ownerReferences === undefined)
    await eventually(async () => (await owned()).length === 3)

    await cluster.client.of(resourceQuotas).create({ metadata: { namespace, name: 'few' }, spec: { hard: { pods: '4' } } })
    await controllers.patch({ namespace, name: 'old' }, 'merge', { spec: { replicas: 4 } })
    const failure = await eventually(async () => (await status())?.conditions?.find(({ type }) => type === 'ReplicaFailure') ?? false)
    assert.equal(failure.reason, 'FailedCreate')
    assert.match(failure.message ?? '', /exceeded quota: few, requested: pods=1, used: pods=4, limited: pods=4/)
    await controllers.patch({ namespace, name: 'old' }, 'merge', { spec: { replicas: 1 } })
    await eventually(async () => (await status())?.replicas === 1 && (await owned()).length === 1)
  } finally {
    await cluster.close()
  }
})
