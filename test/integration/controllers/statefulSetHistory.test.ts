/** StatefulSets and DaemonSets on a whole cluster under virtual time: whose the pods and revisions are, and which revisions stay. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StatefulSetSpec } from '#api/gen/types/apps.v1'
import { controllerRevisions, daemonSets, pods, statefulSets } from '#client/builtIn'
import { startCluster, type TestCluster } from '#testing/cluster'

const namespace = 'default'
const labels = { app: 'db' }
const template = (image = 'example.com/db:1') => ({
  metadata: { labels },
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image }] },
})

async function withCluster(use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster({ nodes: 2 })
  try {
    await use(cluster)
  } finally {
    await cluster.close()
  }
}

const specOf = (spec: Partial<StatefulSetSpec>) => ({ replicas: 2, serviceName: 'db', selector: { matchLabels: labels }, template: template(), ...spec })
const add = ({ client }: TestCluster, spec: Partial<StatefulSetSpec> = {}) =>
  client.of(statefulSets).create({ metadata: { namespace, name: 'db' }, spec: specOf(spec) })
const patch = ({ client }: TestCluster, spec: Partial<StatefulSetSpec>) => client.of(statefulSets).patch({ namespace, name: 'db' }, 'merge', { spec })
const statusOf = async ({ client }: TestCluster) => (await client.of(statefulSets).get({ namespace, name: 'db' })).status
const podsOf = async ({ client }: TestCluster) => (await client.of(pods).list({ namespace, labelSelector: 'app=db' })).items
const revisionsOf = async ({ client }: TestCluster) => (await client.of(controllerRevisions).list({ namespace })).items

/** Every pod is available and of the present template. */
const settled = (cluster: TestCluster, replicas = 2) =>
  cluster.until(async () => {
    const status = await statusOf(cluster)
    const isSeen = status?.observedGeneration === (await cluster.client.of(statefulSets).get({ namespace, name: 'db' })).metadata.generation
    return isSeen && status?.availableReplicas === replicas && status.updatedReplicas === replicas && status.currentRevision === status.updateRevision
  })

test('CTL-05 pods and revisions that a set left behind are adopted by the next of its name, and get back the labels they lost', () =>
  withCluster(async (cluster) => {
    const { client } = cluster
    await add(cluster)
    await settled(cluster)
    assert.equal((await statusOf(cluster))?.collisionCount, 0)
    const before = (await podsOf(cluster)).map(({ metadata }) => metadata.uid)
    await client.of(statefulSets).delete({ namespace, name: 'db' }, { propagationPolicy: 'Orphan' })
    await cluster.until(async () => (await client.of(statefulSets).list({ namespace })).items.length === 0)
    const left = [...(await podsOf(cluster)), ...(await revisionsOf(cluster))]
    assert.deepEqual(
      left.map(({ metadata }) => metadata.ownerReferences?.length ?? 0),
      [0, 0, 0],
    )
    const lost = { 'statefulset.kubernetes.io/pod-name': null, 'apps.kubernetes.io/pod-index': null }
    await client.of(pods).patch({ namespace, name: 'db-1' }, 'merge', { metadata: { labels: lost } })
    const { metadata } = await add(cluster)
    await settled(cluster)
    const after = await podsOf(cluster)
    assert.deepEqual(
      after.map((pod) => pod.metadata.uid),
      before,
    )
    const revisions = await revisionsOf(cluster)
    assert.deepEqual(
      [...after, ...revisions].map((object) => object.metadata.ownerReferences?.[0]?.uid),
      [metadata.uid, metadata.uid, metadata.uid],
    )
    await cluster.until(async () => (await client.of(pods).get({ namespace, name: 'db-1' })).metadata.labels?.['apps.kubernetes.io/pod-index'] === '1')
  }))

test('CTL-05 a revision whose name is taken gets another, and the status counts it', () =>
  withCluster(async (cluster) => {
    const { client } = cluster
    await add(cluster)
    await settled(cluster)
    const [first] = await revisionsOf(cluster)
    await client.of(statefulSets).delete({ namespace, name: 'db' }, { propagationPolicy: 'Foreground' })
    await cluster.until(async () => (await revisionsOf(cluster)).length === 0 && (await podsOf(cluster)).length === 0)
    const name = first?.metadata.name ?? ''
    await client.of(controllerRevisions).create({ metadata: { namespace, name }, data: { other: true } as never, revision: 7 })
    await add(cluster)
    await settled(cluster)
    const status = await statusOf(cluster)
    assert.equal(status?.collisionCount, 1)
    assert.notEqual(status?.updateRevision, name)
    assert.equal((await revisionsOf(cluster)).length, 2)
  }))

test('CTL-05 CTL-06 revisionHistoryLimit keeps so many old revisions, and a rollback gives the old revision the highest number', () =>
  withCluster(async (cluster) => {
    const { client } = cluster
    await add(cluster, { revisionHistoryLimit: 2, podManagementPolicy: 'Parallel' })
    const spec = { selector: { matchLabels: { app: 'agent' } }, revisionHistoryLimit: 2 }
    const agent = (image: string) => ({ ...template(image), metadata: { labels: { app: 'agent' } } })
    await client.of(daemonSets).create({ metadata: { namespace, name: 'agent' }, spec: { ...spec, template: agent('example.com/db:1') } })
    for (const image of ['example.com/db:2', 'example.com/db:3', 'example.com/db:4', 'example.com/db:3']) {
      await settled(cluster)
      await patch(cluster, { template: template(image) })
      await client.of(daemonSets).patch({ namespace, name: 'agent' }, 'merge', { spec: { template: agent(image) } })
      await cluster.until(async () => {
        const { status, metadata } = await client.of(daemonSets).get({ namespace, name: 'agent' })
        return status.observedGeneration === metadata.generation && status.updatedNumberScheduled === 2 && status.numberAvailable === 2
      })
    }
    await settled(cluster)
    const numbers = async (owner: string) =>
      (await revisionsOf(cluster))
        .filter(({ metadata }) => metadata.ownerReferences?.[0]?.kind === owner)
        .map(({ revision }) => revision)
        .sort()
    await cluster.until(async () => (await numbers('StatefulSet')).join() === '2,4,5' && (await numbers('DaemonSet')).join() === '2,4,5')
  }))

test('CTL-05 after a broken update was taken back its pod still has to be deleted by hand, as upstream', () =>
  withCluster(async (cluster) => {
    const readinessGates = [{ conditionType: 'example.com/never' }]
    const broken = { ...template('example.com/db:2'), spec: { ...template('example.com/db:2').spec, readinessGates } }
    await add(cluster)
    await settled(cluster)
    await patch(cluster, { template: broken })
    await cluster.clock.advance(30_000)
    await patch(cluster, { template: { ...template(), spec: { ...template().spec, readinessGates: [] } } })
    await cluster.clock.advance(60_000)
    const images = async () => (await podsOf(cluster)).map(({ spec }) => spec.containers[0]?.image)
    assert.deepEqual(await images(), ['example.com/db:1', 'example.com/db:2'])
    await cluster.client.of(pods).delete({ namespace, name: 'db-1' })
    await settled(cluster)
    assert.deepEqual(await images(), ['example.com/db:1', 'example.com/db:1'])
  }))
