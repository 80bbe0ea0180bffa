import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Deployment } from '#api/gen/types/apps.v1'
import { isPodActive } from '#api/helpers/pods'
import { deployments, events, pods, replicaSets } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster()
})
after(() => cluster.close())

const namespace = 'default'
const template = (name: string, image: string) => ({ metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image }] } })
const create = (name: string, replicas: number, spec: Partial<Deployment['spec']> = {}) =>
  cluster.client
    .of(deployments)
    .create({ metadata: { namespace, name }, spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name, 'a:1'), ...spec } })
const podsOf = async (name: string) => (await cluster.client.of(pods).list({ namespace, labelSelector: `app=${name}` })).items.filter(isPodActive)
const setsOf = async (name: string) => (await cluster.client.of(replicaSets).list({ namespace, labelSelector: `app=${name}` })).items
const rolledOut = (name: string, replicas: number) =>
  eventually(async () => {
    const { metadata, spec, status } = await cluster.client.of(deployments).get({ namespace, name })
    assert.equal(status.observedGeneration, metadata.generation)
    assert.deepEqual(
      [status.replicas ?? 0, status.updatedReplicas ?? 0, status.availableReplicas ?? 0, spec.replicas],
      [replicas, replicas, replicas, replicas],
    )
    return { metadata, status }
  })

test('CTL-03 CTL-04 a deployment creates its pods, replaces lost ones and scales', async () => {
  await create('web', 3)
  const { metadata, status } = await rolledOut('web', 3)
  assert.equal(metadata.annotations?.['deployment.kubernetes.io/revision'], '1')
  await eventually(async () => {
    const { status } = await cluster.client.of(deployments).get({ namespace, name: 'web' })
    return status.conditions?.some(({ reason }) => reason === 'NewReplicaSetAvailable') ?? false
  })
  assert.equal(status.conditions?.find(({ type }) => type === 'Available')?.status, 'True')
  const [first] = await podsOf('web')
  await cluster.client.of(pods).delete({ namespace, name: first?.metadata.name ?? '' })
  await eventually(async () => {
    const now = await podsOf('web')
    return now.length === 3 && now.every(({ metadata }) => metadata.uid !== first?.metadata.uid)
  })
  await cluster.client.of(deployments).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 5 } })
  await rolledOut('web', 5)
  await cluster.client.of(deployments).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 1 } })
  await rolledOut('web', 1)
  const recorded = (await cluster.client.of(events).list({ namespace })).items.map(({ reason, message }) => `${reason} ${message}`)
  const set = (await setsOf('web'))[0]?.metadata.name
  assert.equal(recorded.includes(`ScalingReplicaSet Scaled up replica set ${set} from 0 to 3`), true)
  assert.equal(recorded.includes(`ScalingReplicaSet Scaled down replica set ${set} from 5 to 1`), true)
  assert.equal(
    recorded.some((text) => text.startsWith('SuccessfulCreate Created pod: web-')),
    true,
  )
})

test('CTL-04 a rolling update keeps availability, records revisions and can be undone', async () => {
  await create('roll', 4, { strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } })
  await rolledOut('roll', 4)
  let fewest = 4
  const watching = new AbortController()
  const watched = (async () => {
    for await (const _ of cluster.client.of(deployments).watch({ namespace, signal: watching.signal })) {
      const { status } = await cluster.client.of(deployments).get({ namespace, name: 'roll' })
      fewest = Math.min(fewest, status.availableReplicas ?? 0)
    }
  })().catch(() => {})
  await cluster.client.of(deployments).patch({ namespace, name: 'roll' }, 'strategic', { spec: { template: template('roll', 'a:2') } })
  const { metadata } = await rolledOut('roll', 4)
  watching.abort()
  await watched
  assert.equal(fewest, 4)
  assert.equal(metadata.annotations?.['deployment.kubernetes.io/revision'], '2')
  assert.equal((await setsOf('roll')).length, 2)
  await cluster.client.of(deployments).patch({ namespace, name: 'roll' }, 'strategic', { spec: { template: template('roll', 'a:1') } })
  const undone = await rolledOut('roll', 4)
  assert.equal(undone.metadata.annotations?.['deployment.kubernetes.io/revision'], '3')
  const back = (await setsOf('roll')).find(({ spec }) => spec.replicas === 4)
  assert.equal(back?.metadata.annotations?.['deployment.kubernetes.io/revision-history'], '1')
})

test('CTL-04 Recreate never runs old and new together; history is cut to its limit; a paused deployment does not roll', async () => {
  await create('again', 2, { strategy: { type: 'Recreate' }, revisionHistoryLimit: 0 })
  await rolledOut('again', 2)
  await cluster.client.of(deployments).patch({ namespace, name: 'again' }, 'strategic', { spec: { template: template('again', 'a:2') } })
  await eventually(async () => {
    const all = (await cluster.client.of(pods).list({ namespace, labelSelector: 'app=again' })).items
    assert.equal(new Set(all.map(({ spec }) => spec.containers[0]?.image)).size <= 1, true)
    return all.length === 2 && all.every(({ spec }) => spec.containers[0]?.image === 'a:2')
  })
  await rolledOut('again', 2)
  await eventually(async () => (await setsOf('again')).length === 1)
  await cluster.client.of(deployments).patch({ namespace, name: 'again' }, 'strategic', { spec: { paused: true, template: template('again', 'a:3') } })
  await eventually(async () => {
    const { status } = await cluster.client.of(deployments).get({ namespace, name: 'again' })
    return status.conditions?.some(({ reason }) => reason === 'DeploymentPaused') ?? false
  })
  assert.equal((await setsOf('again')).length, 1)
})

test('CTL-03 a replica set adopts matching orphans and releases pods that no longer match', async () => {
  const labels = { app: 'adopt' }
  const pod = (name: string) => ({ metadata: { namespace, name, labels }, spec: { containers: [{ name: 'c', image: 'a' }] } })
  await cluster.client.of(pods).create(pod('orphan'))
  const set = await cluster.client.of(replicaSets).create({
    metadata: { namespace, name: 'adopt' },
    spec: { replicas: 2, selector: { matchLabels: labels }, template: template('adopt', 'a') },
  })
  await eventually(
    async () =>
      (await podsOf('adopt')).length === 2 && (await podsOf('adopt')).every(({ metadata }) => metadata.ownerReferences?.[0]?.uid === set.metadata.uid),
  )
  await cluster.client.of(pods).patch({ namespace, name: 'orphan' }, 'merge', { metadata: { labels: { app: 'free' } } })
  await eventually(async () => ((await cluster.client.of(pods).get({ namespace, name: 'orphan' })).metadata.ownerReferences?.length ?? 0) === 0)
  await eventually(async () => (await podsOf('adopt')).length === 2)
})

test('ARC-09 syncing again writes nothing', async () => {
  await create('quiet', 2)
  await rolledOut('quiet', 2)
  await eventually(async () => {
    const before = (await cluster.client.of(deployments).list({ namespace })).metadata.resourceVersion
    await new Promise((resolve) => setTimeout(resolve, 50))
    return (await cluster.client.of(deployments).list({ namespace })).metadata.resourceVersion === before
  })
  const version = (await cluster.client.of(deployments).list({ namespace })).metadata.resourceVersion
  for (const name of ['deployment-controller', 'replicaset-controller']) {
    await cluster.manager.setEnabled(name, false)
    await cluster.manager.setEnabled(name, true)
  }
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal((await cluster.client.of(deployments).list({ namespace })).metadata.resourceVersion, version)
  assert.deepEqual(cluster.complaints, [])
})

test('ARC-09 after a restart the controllers process changes made while they were down', async () => {
  await create('missed', 3)
  await rolledOut('missed', 3)
  await cluster.manager.setEnabled('replicaset-controller', false)
  for (const { metadata } of (await podsOf('missed')).slice(0, 2)) await cluster.client.of(pods).delete({ namespace, name: metadata.name ?? '' })
  await eventually(async () => (await podsOf('missed')).length === 1)
  await cluster.manager.setEnabled('replicaset-controller', true)
  await eventually(async () => (await podsOf('missed')).length === 3)
})
