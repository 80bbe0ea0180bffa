import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { controllerRevisions, daemonSets, nodes, pods } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster({ controllers: ['daemonset-controller'] })
})
after(() => cluster.close())

const namespace = 'default'
const labels = { app: 'agent' }
const template = (image: string) => ({ metadata: { labels }, spec: { containers: [{ name: 'c', image }], nodeSelector: { role: 'worker' } } })
const node = (name: string, role: string) => ({ metadata: { name, labels: { role } }, spec: {} })
const agents = async () => (await cluster.client.of(pods).list({ namespace, labelSelector: 'app=agent' })).items
const nodeOf = (pod: { spec: Awaited<ReturnType<typeof agents>>[number]['spec'] }) =>
  pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms[0]?.matchFields?.[0]?.values?.[0]

test('CTL-06 each matching node has one pod, also after nodes are added and removed', async () => {
  for (const name of ['w1', 'w2']) await cluster.client.of(nodes).create(node(name, 'worker'))
  await cluster.client.of(nodes).create(node('c1', 'control'))
  await cluster.client.of(daemonSets).create({ metadata: { namespace, name: 'agent' }, spec: { selector: { matchLabels: labels }, template: template('a:1') } })
  await eventually(async () => (await agents()).length === 2)
  assert.deepEqual((await agents()).map(nodeOf).sort(), ['w1', 'w2'])
  assert.equal(
    (await agents())[0]?.spec.tolerations?.some(({ key }) => key === 'node.kubernetes.io/unreachable'),
    true,
  )
  await cluster.client.of(nodes).create(node('w3', 'worker'))
  await eventually(async () => (await agents()).length === 3)
  await cluster.client.of(nodes).patch({ name: 'w3' }, 'merge', { metadata: { labels: { role: 'none' } } })
  await eventually(async () => (await agents()).length === 2)
  await eventually(async () => {
    const { status } = await cluster.client.of(daemonSets).get({ namespace, name: 'agent' })
    assert.deepEqual([status.desiredNumberScheduled, status.currentNumberScheduled, status.numberReady, status.numberAvailable], [2, 2, 2, 2])
    return true
  })
})

test('CTL-06 a new template replaces pods one by one and leaves a revision', async () => {
  await cluster.client.of(daemonSets).patch({ namespace, name: 'agent' }, 'strategic', { spec: { template: template('a:2') } })
  await eventually(async () => {
    const all = await agents()
    assert.equal(all.filter(({ status }) => status.phase === 'Running').length >= 0, true)
    return all.length === 2 && all.every(({ spec }) => spec.containers[0]?.image === 'a:2')
  })
  const revisions = (await cluster.client.of(controllerRevisions).list({ namespace })).items
  assert.deepEqual(revisions.map(({ revision }) => revision).sort(), [1, 2])
  assert.deepEqual(cluster.complaints, [])
})

test('CTL-06 the status has desiredNumberScheduled even if no pod can be created', async () => {
  const strict = await startTestCluster({ admission: true, controllers: ['daemonset-controller'] })
  const { client } = strict
  try {
    await client.of(nodes).create(node('w1', 'worker'))
    const { metadata, spec } = template('a:1')
    const lost = { metadata, spec: { ...spec, serviceAccountName: 'nobody', tolerations: [{ operator: 'Exists' }] } }
    await client.of(daemonSets).create({ metadata: { namespace, name: 'agent' }, spec: { selector: { matchLabels: labels }, template: lost } })
    await eventually(async () => {
      const { status } = await client.of(daemonSets).get({ namespace, name: 'agent' })
      assert.deepEqual([status.observedGeneration, status.desiredNumberScheduled, status.currentNumberScheduled, status.numberUnavailable], [1, 1, 0, 1])
      return true
    })
    assert.deepEqual((await client.of(pods).list({ namespace })).items, [])
  } finally {
    await strict.close()
  }
})
