/** What becomes of dependents when their owner is deleted. Upstream: test/e2e/apimachinery/garbage_collector.go. */
import assert from 'node:assert/strict'
import { configMaps, deployments, pods, replicaSets, replicationControllers } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'
import { selectorOf, templateOf } from '../workloads.ts'

const labels = { gc: 'yes' }
const replicas = 2

const podCount = async ({ client, namespace }: BehaviourContext) => (await client.of(pods).list({ namespace, labelSelector: 'gc=yes' })).items.length

async function createController(context: BehaviourContext, name = 'owner', finalizers?: string[]) {
  const metadata = { name, ...(finalizers ? { finalizers } : {}) }
  const created = await context.create(replicationControllers, { metadata, spec: { replicas, selector: labels, template: templateOf(labels) } })
  await context.eventually(
    'all pods',
    () => podCount(context),
    (count) => count === replicas,
  )
  return created
}

async function createDeployment(context: BehaviourContext) {
  await context.create(deployments, { metadata: { name: 'owner' }, spec: { replicas, selector: selectorOf(labels), template: templateOf(labels) } })
  await context.eventually(
    'all pods',
    () => podCount(context),
    (count) => count === replicas,
  )
}

const ownedBy = (kind: string, name: string, uid: string | undefined, blockOwnerDeletion = false) => ({
  apiVersion: 'v1',
  kind,
  name,
  uid: uid ?? '',
  ...(blockOwnerDeletion ? { blockOwnerDeletion } : {}),
})

/** The collector has had a look since: what it would delete is gone, of an owner deleted after. */
async function collectorHasPassed(context: BehaviourContext): Promise<void> {
  const owner = await context.create(configMaps, { metadata: { name: 'passed-owner' } })
  await context.create(configMaps, { metadata: { name: 'passed', ownerReferences: [ownedBy('ConfigMap', 'passed-owner', owner.metadata.uid)] } })
  await context.client.of(configMaps).delete({ namespace: context.namespace, name: 'passed-owner' }, { propagationPolicy: 'Background' })
  await context.waitUntilGone(configMaps, 'passed')
}

export const garbageCollection: BehaviourGroup = {
  sig: 'sig-api-machinery',
  title: 'Garbage collection',
  rows: ['CTL-14'],
  behaviours: [
    {
      name: 'background delete of RC removes Pods',
      run: async (context) => {
        await createController(context)
        await context.client.of(replicationControllers).delete({ namespace: context.namespace, name: 'owner' }, { propagationPolicy: 'Background' })
        await context.eventually(
          'no pods',
          () => podCount(context),
          (count) => count === 0,
        )
      },
    },
    {
      name: 'orphan policy keeps RC Pods',
      run: async (context) => {
        await createController(context)
        await context.client.of(replicationControllers).delete({ namespace: context.namespace, name: 'owner' }, { propagationPolicy: 'Orphan' })
        await context.waitUntilGone(replicationControllers, 'owner')
        await collectorHasPassed(context)
        const { items } = await context.client.of(pods).list({ namespace: context.namespace, labelSelector: 'gc=yes' })
        assert.deepEqual(
          items.map(({ metadata }) => [metadata.ownerReferences ?? [], metadata.deletionTimestamp]),
          Array(replicas).fill([[], undefined]),
        )
      },
    },
    {
      name: 'background delete of Deployment removes RS and Pods',
      run: async (context) => {
        await createDeployment(context)
        await context.client.of(deployments).delete({ namespace: context.namespace, name: 'owner' }, { propagationPolicy: 'Background' })
        await context.eventually(
          'neither replica sets nor pods',
          async () => (await context.client.of(replicaSets).list({ namespace: context.namespace })).items.length + (await podCount(context)),
          (count) => count === 0,
        )
      },
    },
    {
      name: 'orphan policy keeps RS and Pods',
      run: async (context) => {
        await createDeployment(context)
        await context.client.of(deployments).delete({ namespace: context.namespace, name: 'owner' }, { propagationPolicy: 'Orphan' })
        await context.waitUntilGone(deployments, 'owner')
        await collectorHasPassed(context)
        const { items } = await context.client.of(replicaSets).list({ namespace: context.namespace })
        assert.deepEqual(
          items.map(({ metadata }) => metadata.ownerReferences ?? []),
          [[]],
        )
        assert.equal(await podCount(context), replicas)
      },
    },
    {
      name: 'foreground delete keeps RC until Pods are gone',
      run: async (context) => {
        await createController(context)
        const ref = { namespace: context.namespace, name: 'owner' }
        const { items } = await context.client.of(pods).list({ namespace: context.namespace, labelSelector: 'gc=yes' })
        const held = items[0]?.metadata.name ?? ''
        // A pod that is held back holds its owner back, too.
        await context.client.of(pods).patch({ ...ref, name: held }, 'merge', { metadata: { finalizers: ['example.com/held'] } })
        await context.client.of(replicationControllers).delete(ref, { propagationPolicy: 'Foreground' })
        await context.eventually(
          'one pod left',
          () => podCount(context),
          (count) => count === 1,
        )
        const { metadata } = await context.get(replicationControllers, 'owner')
        assert.deepEqual(metadata.finalizers, ['foregroundDeletion'])
        await context.client.of(pods).patch({ ...ref, name: held }, 'merge', { metadata: { finalizers: null } })
        await context.waitUntilGone(replicationControllers, 'owner')
        assert.equal(await podCount(context), 0)
      },
    },
    {
      name: 'dependents with a second valid owner survive',
      run: async (context) => {
        const deleted = await createController(context, 'owner')
        const stays = await context.create(configMaps, { metadata: { name: 'stays' } })
        const { items } = await context.client.of(pods).list({ namespace: context.namespace, labelSelector: 'gc=yes' })
        const shared = items[0]?.metadata.name ?? ''
        await context.client.of(pods).patch({ namespace: context.namespace, name: shared }, 'strategic', {
          metadata: { ownerReferences: [ownedBy('ConfigMap', 'stays', stays.metadata.uid)] },
        })
        await context.client.of(replicationControllers).delete({ namespace: context.namespace, name: 'owner' }, { propagationPolicy: 'Foreground' })
        await context.waitUntilGone(replicationControllers, 'owner')
        await context.eventually(
          'one pod left',
          () => podCount(context),
          (count) => count === 1,
        )
        const { metadata } = await context.get(pods, shared)
        assert.equal(metadata.deletionTimestamp, undefined)
        assert.ok(!metadata.ownerReferences?.some(({ uid }) => uid === deleted.metadata.uid), 'the owner that is gone is forgotten')
      },
    },
    {
      name: 'ownership cycle does not block',
      run: async (context) => {
        const { namespace, client } = context
        const names = ['pod1', 'pod2', 'pod3']
        const created = await Promise.all(names.map((name) => context.readyPod({ name, labels, script: 'sleep 600' })))
        await Promise.all(
          names.map((name, index) => {
            const owner = created[(index + 1) % names.length]?.metadata
            const reference = { ...ownedBy('Pod', owner?.name ?? '', owner?.uid, true), controller: true }
            return client.of(pods).patch({ namespace, name }, 'strategic', { metadata: { ownerReferences: [reference] } })
          }),
        )
        await client.of(pods).delete({ namespace, name: 'pod1' }, { propagationPolicy: 'Foreground' })
        await context.eventually(
          'the end of all three',
          () => podCount(context),
          (count) => count === 0,
        )
      },
    },
  ],
}
