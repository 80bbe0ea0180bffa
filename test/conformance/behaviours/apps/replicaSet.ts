/** Replica sets and their older sisters. Upstream: test/e2e/apps/{replica_set,rc}.go. */
import assert from 'node:assert/strict'
import { pods, replicaSets, replicationControllers } from '#client/builtIn'
import { type Behaviour, type BehaviourGroup, table } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'
import { scalesBySubresource, selectorOf, templateOf, writesStatus } from '../workloads.ts'

const labels = { app: 'web' }

/** The two kinds differ in the form of their selector. */
const kinds = {
  replicaSet: {
    resource: replicaSets,
    create: ({ create }: BehaviourContext, replicas: number) =>
      create(replicaSets, { metadata: { name: 'owner', labels }, spec: { replicas, selector: selectorOf(labels), template: templateOf(labels) } }),
    replicas: async ({ get }: BehaviourContext) => (await get(replicaSets, 'owner')).status,
  },
  controller: {
    resource: replicationControllers,
    create: ({ create }: BehaviourContext, replicas: number) =>
      create(replicationControllers, { metadata: { name: 'owner', labels }, spec: { replicas, selector: labels, template: templateOf(labels) } }),
    replicas: async ({ get }: BehaviourContext) => (await get(replicationControllers, 'owner')).status,
  },
}

type Kind = (typeof kinds)[keyof typeof kinds]

const available = (context: BehaviourContext, kind: Kind, count: number) =>
  context.eventually(
    `${count} available`,
    () => kind.replicas(context),
    (status) => status?.replicas === count && (status.availableReplicas ?? 0) === count,
  )

/** The pod whose label the selector looks at. */
const relabel = ({ client, namespace }: BehaviourContext, name: string, app: string) =>
  client.of(pods).patch({ namespace, name }, 'merge', { metadata: { labels: { app } } })

const ownerOf = async ({ get }: BehaviourContext, name: string) => (await get(pods, name)).metadata.ownerReferences?.find(({ controller }) => controller)?.name

const owned = (context: BehaviourContext, name: string, owner: string | undefined) =>
  context.eventually(
    `${name} is owned by ${owner}`,
    () => ownerOf(context, name),
    (seen) => seen === owner,
  )

async function adopts(context: BehaviourContext, kind: Kind) {
  await context.readyPod({ name: 'orphan', labels, script: 'sleep 600' })
  await kind.create(context, 1)
  await owned(context, 'orphan', 'owner')
  await available(context, kind, 1)
}

async function releases(context: BehaviourContext, kind: Kind) {
  await kind.create(context, 1)
  await available(context, kind, 1)
  const { items } = await context.client.of(pods).list({ namespace: context.namespace, labelSelector: 'app=web' })
  const name = items[0]?.metadata.name ?? ''
  await relabel(context, name, 'other')
  await owned(context, name, undefined)
  await available(context, kind, 1)
}

function scales(name: string, kind: Kind): Behaviour {
  return {
    name,
    run: async (context) => {
      await kind.create(context, 1)
      await available(context, kind, 1)
      await scalesBySubresource(context, kind.resource, 'owner', (count) => available(context, kind, count))
    },
  }
}

export const replicaSetGroup: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'ReplicaSet',
  rows: ['CTL-03'],
  behaviours: [
    {
      name: 'adopt/release',
      run: async (context) => {
        await adopts(context, kinds.replicaSet)
        await relabel(context, 'orphan', 'other')
        await owned(context, 'orphan', undefined)
        await available(context, kinds.replicaSet, 1)
      },
    },
    scales('scale subresource', kinds.replicaSet),
    {
      name: 'replace + patch',
      run: async (context) => {
        await kinds.replicaSet.create(context, 1)
        await available(context, kinds.replicaSet, 1)
        const ref = { namespace: context.namespace, name: 'owner' }
        await context.eventually(
          'the replaced one',
          async () => {
            const current = await context.client.of(replicaSets).get(ref)
            return context.client
              .of(replicaSets)
              .update({ ...current, spec: { ...current.spec, replicas: 2 } })
              .catch(() => undefined)
          },
          (object) => object?.spec?.replicas === 2,
        )
        await available(context, kinds.replicaSet, 2)
        const patch = { metadata: { labels: { patched: 'yes' } }, spec: { replicas: 3, template: { spec: { terminationGracePeriodSeconds: 0 } } } }
        const patched = await context.client.of(replicaSets).patch(ref, 'strategic', patch)
        assert.deepEqual([patched.metadata.labels?.patched, patched.spec?.template?.spec?.terminationGracePeriodSeconds], ['yes', 0])
        await available(context, kinds.replicaSet, 3)
      },
    },
    {
      name: 'list + deletecollection',
      run: async (context) => {
        await kinds.replicaSet.create(context, 2)
        await available(context, kinds.replicaSet, 2)
        const { client, namespace } = context
        const list = async () =>
          (await client.of(replicaSets).list({ labelSelector: 'app=web' })).items.filter(({ metadata }) => metadata.namespace === namespace)
        assert.equal((await list()).length, 1)
        await client.of(replicaSets).deleteCollection({ namespace, labelSelector: 'app=web' })
        await context.eventually('none left', list, (items) => items.length === 0)
      },
    },
    {
      name: 'status endpoints',
      run: async (context) => {
        await kinds.replicaSet.create(context, 1)
        await available(context, kinds.replicaSet, 1)
        await writesStatus(context, replicaSets, 'owner')
      },
    },
  ],
}

export const replicationController: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'ReplicationController',
  rows: ['CTL-02'],
  behaviours: [
    ...table(
      [
        { name: 'adopt', run: adopts },
        { name: 'release', run: releases },
      ],
      ({ name, run }) => ({ name, run: (context) => run(context, kinds.controller) }),
    ),
    scales('scale get/update', kinds.controller),
    {
      name: 'lifecycle',
      run: async (context) => {
        const { client, namespace } = context
        const ref = { namespace, name: 'owner' }
        await kinds.controller.create(context, 1)
        await available(context, kinds.controller, 1)
        await client.of(replicationControllers).patch(ref, 'strategic', { metadata: { labels: { patched: 'yes' } }, spec: { replicas: 2 } })
        await available(context, kinds.controller, 2)
        await client.of(replicationControllers).patch(ref, 'merge', { status: { availableReplicas: 0 } }, { subresource: 'status' })
        await available(context, kinds.controller, 2)
        const { items } = await client.of(replicationControllers).list({ labelSelector: 'patched=yes' })
        assert.ok(items.some(({ metadata }) => metadata.namespace === namespace))
        await client.of(replicationControllers).deleteCollection({ namespace, labelSelector: 'patched=yes' })
        await context.waitUntilGone(replicationControllers, 'owner')
      },
    },
  ],
}
