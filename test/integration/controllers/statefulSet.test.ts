import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { controllerRevisions, persistentVolumeClaims, pods, statefulSets } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster({ controllers: ['statefulset-controller'] })
})
after(() => cluster.close())

const namespace = 'default'
const labels = { app: 'web' }
const template = (image: string) => ({ metadata: { labels }, spec: { containers: [{ name: 'c', image }] } })
const list = async () => (await cluster.client.of(pods).list({ namespace, labelSelector: 'app=web' })).items
const names = async () => (await list()).map(({ metadata }) => metadata.name).sort()

test('CTL-05 pods are created in order, each with its name, hostname and claim', async () => {
  const order: string[] = []
  const watching = new AbortController()
  const watched = (async () => {
    for await (const batch of cluster.client.of(pods).watch({ namespace, labelSelector: 'app=web', signal: watching.signal })) {
      for (const { type, object } of batch) {
        if (type === 'ADDED') order.push(`add ${object.metadata.name}`)
        if (type === 'MODIFIED' && object.status?.phase === 'Running' && order.at(-1)?.startsWith('add')) order.push(`run ${object.metadata.name}`)
      }
    }
  })().catch(() => {})
  await cluster.client.of(statefulSets).create({
    metadata: { namespace, name: 'web' },
    spec: {
      replicas: 3,
      serviceName: 'web',
      selector: { matchLabels: labels },
      template: template('a:1'),
      volumeClaimTemplates: [
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          status: {},
        },
      ],
    },
  })
  await eventually(async () => {
    const { status } = await cluster.client.of(statefulSets).get({ namespace, name: 'web' })
    assert.deepEqual([status?.replicas, status?.readyReplicas, status?.currentReplicas, status?.updatedReplicas, status?.availableReplicas], [3, 3, 3, 3, 3])
    return status?.currentRevision === status?.updateRevision
  })
  watching.abort()
  await watched
  assert.deepEqual(order, ['add web-0', 'run web-0', 'add web-1', 'run web-1', 'add web-2', 'run web-2'])
  const [first] = await list()
  assert.deepEqual([first?.spec.hostname, first?.spec.subdomain, first?.metadata.labels?.['apps.kubernetes.io/pod-index']], ['web-0', 'web', '0'])
  assert.equal(first?.spec.volumes?.find(({ name }) => name === 'data')?.persistentVolumeClaim?.claimName, 'data-web-0')
  const claims = (await cluster.client.of(persistentVolumeClaims).list({ namespace })).items.map(({ metadata }) => metadata.name)
  assert.deepEqual(claims.sort(), ['data-web-0', 'data-web-1', 'data-web-2'])
})

test('CTL-05 an update replaces from the highest ordinal down to the partition', async () => {
  await cluster.client
    .of(statefulSets)
    .patch({ namespace, name: 'web' }, 'strategic', { spec: { template: template('a:2'), updateStrategy: { rollingUpdate: { partition: 1 } } } })
  const images = async () => Object.fromEntries((await list()).map(({ metadata, spec }) => [metadata.name, spec.containers[0]?.image]))
  await eventually(async () => {
    assert.deepEqual(await images(), { 'web-0': 'a:1', 'web-1': 'a:2', 'web-2': 'a:2' })
    return true
  })
  // A pod below the partition is recreated at the old revision.
  await cluster.client.of(pods).delete({ namespace, name: 'web-0' }, { gracePeriodSeconds: 0 })
  await eventually(async () => (await images())['web-0'] === 'a:1')
  await cluster.client.of(statefulSets).patch({ namespace, name: 'web' }, 'merge', { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } })
  await eventually(async () => (await images())['web-0'] === 'a:2')
  assert.equal((await cluster.client.of(controllerRevisions).list({ namespace })).items.length, 2)
})

test('CTL-05 scaling down takes the highest ordinal first and keeps the claims', async () => {
  await eventually(async () => (await cluster.client.of(statefulSets).get({ namespace, name: 'web' })).status?.readyReplicas === 3)
  await cluster.client.of(statefulSets).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 1 } })
  await eventually(async () => (await names()).join() === 'web-0')
  assert.equal((await cluster.client.of(persistentVolumeClaims).list({ namespace })).items.length, 3)
  assert.deepEqual(cluster.complaints, [])
})

test('CTL-05 persistentVolumeClaimRetentionPolicy: scaling down gives the claim to its pod, which takes it along', async () => {
  const claims = async () => (await cluster.client.of(persistentVolumeClaims).list({ namespace })).items
  const ownersOf = async (name: string) => (await claims()).find(({ metadata }) => metadata.name === name)?.metadata.ownerReferences?.map(({ kind }) => kind)
  const policy = { whenDeleted: 'Delete', whenScaled: 'Delete' }
  const patch = { spec: { persistentVolumeClaimRetentionPolicy: policy, replicas: 2 } }
  await cluster.client.of(statefulSets).patch({ namespace, name: 'web' }, 'merge', patch)
  await eventually(async () => (await cluster.client.of(statefulSets).get({ namespace, name: 'web' })).status?.readyReplicas === 2)
  await eventually(async () => (await ownersOf('data-web-0'))?.join() === 'StatefulSet' && (await ownersOf('data-web-1'))?.join() === 'StatefulSet')
  // A claim without a pod is not changed.
  assert.equal(await ownersOf('data-web-2'), undefined)
  await cluster.client.of(statefulSets).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 1 } })
  await eventually(async () => (await ownersOf('data-web-1'))?.join() === 'Pod' && (await names()).join() === 'web-0')
  // Back up again: the pod waits until the garbage collector, which does not run here, has taken the old claim.
  await cluster.client.of(statefulSets).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 2 } })
  await cluster.client.of(persistentVolumeClaims).patch({ namespace, name: 'data-web-1' }, 'merge', { metadata: { finalizers: [] } })
  await cluster.client.of(persistentVolumeClaims).delete({ namespace, name: 'data-web-1' })
  await eventually(async () => (await names()).join() === 'web-0,web-1')
  await eventually(async () => (await ownersOf('data-web-1'))?.join() === 'StatefulSet')
  assert.deepEqual(cluster.complaints, [])
})
