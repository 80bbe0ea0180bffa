import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ConfigMap } from '#api/gen/types/core.v1'
import { ownerReference } from '#api/helpers/owners'
import type { Frozen } from '#api/machinery/meta'
import { configMaps, customResourceDefinitions, deployments, events, namespaced, namespaces, pods, replicaSets } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster()
})
after(() => cluster.close())

const namespace = 'default'
const create = (name: string, owners: readonly Frozen<ConfigMap>[] = [], block = false) =>
  cluster.client.of(configMaps).create({
    metadata: { namespace, name, ownerReferences: owners.map((owner) => ({ ...ownerReference(owner), ...(block ? { blockOwnerDeletion: true } : {}) })) },
  })
const exists = async (name: string) => (await cluster.client.of(configMaps).list({ namespace })).items.some(({ metadata }) => metadata.name === name)
const gone = (name: string) => eventually(async () => !(await exists(name)))

test('CTL-14 background deletion deletes dependents after their owner, also dependents of dependents', async () => {
  const owner = await create('b-owner')
  const child = await create('b-child', [owner])
  await create('b-grandchild', [child])
  await cluster.client.of(configMaps).delete({ namespace, name: 'b-owner' }, { propagationPolicy: 'Background' })
  for (const name of ['b-owner', 'b-child', 'b-grandchild']) await gone(name)
})

test('CTL-14 foreground: the owner goes last', async () => {
  const owner = await create('f-owner')
  const child = await create('f-child', [owner], true)
  await create('f-grandchild', [child], true)
  await cluster.client.of(configMaps).patch({ namespace, name: 'f-grandchild' }, 'merge', { metadata: { finalizers: ['example.com/hold'] } })
  await eventually(async () => exists('f-grandchild'))
  await cluster.client.of(configMaps).delete({ namespace, name: 'f-owner' }, { propagationPolicy: 'Foreground' })
  await eventually(async () => (await cluster.client.of(configMaps).get({ namespace, name: 'f-grandchild' })).metadata.deletionTimestamp !== undefined)
  assert.equal(await exists('f-owner'), true)
  await cluster.client.of(configMaps).patch({ namespace, name: 'f-grandchild' }, 'merge', { metadata: { finalizers: null } })
  for (const name of ['f-grandchild', 'f-child', 'f-owner']) await gone(name)
})

test('CTL-14 orphan: dependents stay and lose the reference', async () => {
  const owner = await create('o-owner')
  await create('o-child', [owner])
  await cluster.client.of(configMaps).delete({ namespace, name: 'o-owner' }, { propagationPolicy: 'Orphan' })
  await gone('o-owner')
  await eventually(async () => ((await cluster.client.of(configMaps).get({ namespace, name: 'o-child' })).metadata.ownerReferences?.length ?? 0) === 0)
})

test('CTL-14 an object whose owner never existed is deleted, but not while another owner exists', async () => {
  const [first, second] = [await create('t-first'), await create('t-second')]
  await create('t-child', [first, second])
  await create('t-ghosts', [{ ...first, metadata: { ...first.metadata, name: 'nobody', uid: '00000000-0000-4000-8000-000000000000' } }])
  await gone('t-ghosts')
  await cluster.client.of(configMaps).delete({ namespace, name: 't-first' })
  await eventually(async () => (await cluster.client.of(configMaps).get({ namespace, name: 't-child' })).metadata.ownerReferences?.length === 1)
  await cluster.client.of(configMaps).delete({ namespace, name: 't-second' })
  await gone('t-child')
})

const boxes = namespaced<ConfigMap>('example.com', 'v1', 'boxes', 'Box')
const defineBoxes = () =>
  cluster.client.of(customResourceDefinitions).create({
    metadata: { name: 'boxes.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'boxes', kind: 'Box' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  })

/** The collector watches boxes once it deletes one whose owner never existed. */
async function createBoxOfAbsentOwner(box: Frozen<ConfigMap>): Promise<void> {
  const ghost = { ...ownerReference(box), name: 'ghost', uid: '00000000-0000-0000-0000-000000000000' }
  await cluster.client.of(boxes).create({ metadata: { namespace, name: 'haunted', ownerReferences: [ghost] } })
  await eventually(async () => !(await cluster.client.of(boxes).list({ namespace })).items.some(({ metadata }) => metadata.name === 'haunted'))
}

test('CTL-14 custom resources own, and go with their owners', async () => {
  await defineBoxes()
  const box = await eventually(() => cluster.client.of(boxes).create({ metadata: { namespace, name: 'outer' } }))
  await createBoxOfAbsentOwner(box)
  const inner = await cluster.client.of(boxes).create({ metadata: { namespace, name: 'inner', ownerReferences: [ownerReference(box)] } })
  await create('in-box', [inner])
  await cluster.client.of(boxes).delete({ namespace, name: 'outer' })
  await gone('in-box')
  assert.deepEqual((await cluster.client.of(boxes).list({ namespace })).items, [])
})

test('CTL-14 a custom resource whose definition was deleted and created again is collected again, without a complaint in between', async () => {
  await cluster.client.of(customResourceDefinitions).delete({ name: 'boxes.example.com' })
  await eventually(async () => (await cluster.client.of(customResourceDefinitions).list()).items.length === 0)
  await defineBoxes()
  const box = await eventually(() => cluster.client.of(boxes).create({ metadata: { namespace, name: 'next' } }))
  await createBoxOfAbsentOwner(box)
  await create('in-next', [box])
  await cluster.client.of(boxes).delete({ namespace, name: 'next' })
  await gone('in-next')
})

test('CTL-14 an owner in another namespace is reported by an event, and counts as absent', async () => {
  await cluster.client.of(namespaces).create({ metadata: { name: 'elsewhere' }, spec: {} })
  const owner = await eventually(() => cluster.client.of(configMaps).create({ metadata: { namespace: 'elsewhere', name: 'far-owner' } }))
  await create('far-child', [owner])
  await gone('far-child')
  const message = await eventually(
    async () => (await cluster.client.of(events).list({ namespace })).items.find(({ reason }) => reason === 'OwnerRefInvalidNamespace')?.message ?? false,
  )
  assert.equal(
    message,
    `ownerRef [v1/ConfigMap, namespace: ${namespace}, name: far-owner, uid: ${owner.metadata.uid}] does not exist in namespace "${namespace}"`,
  )
})

test('CTL-14 deleting a deployment removes its replica sets and pods', async () => {
  const labels = { app: 'web' }
  await cluster.client.of(deployments).create({
    metadata: { namespace, name: 'web' },
    spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'a' }] } } },
  })
  const left = async () => [...(await cluster.client.of(pods).list({ namespace })).items, ...(await cluster.client.of(replicaSets).list({ namespace })).items]
  await eventually(async () => (await left()).length === 3)
  await cluster.client.of(deployments).delete({ namespace, name: 'web' })
  await eventually(async () => (await left()).length === 0)
  assert.deepEqual(cluster.complaints, [])
})
