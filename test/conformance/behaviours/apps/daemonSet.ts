/** Daemons: one for each node that they fit. Upstream: test/e2e/apps/{daemon_set,controller_revision}.go. */
import assert from 'node:assert/strict'
import type { DaemonSetSpec } from '#api/gen/types/apps.v1'
import { controllerRevisions, daemonSets, nodes, pods } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { type BehaviourContext, busybox } from '../context.ts'
import { selectorOf, sleeper, templateOf, writesStatus } from '../workloads.ts'

const labels = { daemon: 'yes' }
const ref = ({ namespace }: BehaviourContext) => ({ namespace, name: 'daemon' })

const create = (context: BehaviourContext, spec: Partial<DaemonSetSpec> = {}) =>
  context.create(daemonSets, { metadata: { name: 'daemon', labels }, spec: { selector: selectorOf(labels), template: templateOf(labels), ...spec } })

const members = async ({ client, namespace }: BehaviourContext) => (await client.of(pods).list({ namespace, labelSelector: 'daemon=yes' })).items
const onNodes = async (context: BehaviourContext) => {
  const running = (await members(context)).filter(({ status, metadata }) => status?.phase === 'Running' && !metadata.deletionTimestamp)
  return running.map(({ spec }) => spec.nodeName ?? '').sort()
}
const runsOn = (context: BehaviourContext, wanted: readonly string[]) =>
  context.eventually(
    `daemons on ${wanted.join(' and ') || 'no node'}`,
    () => onNodes(context),
    (seen) => seen.join() === [...wanted].sort().join(),
  )

const rolledOut = (context: BehaviourContext) =>
  context.waitForObject(
    daemonSets,
    'daemon',
    'is rolled out',
    ({ metadata, status }) =>
      status?.observedGeneration === metadata.generation &&
      status?.updatedNumberScheduled === status?.desiredNumberScheduled &&
      status?.numberAvailable === status?.desiredNumberScheduled,
  )

const roll = (context: BehaviourContext, image: string, version: string) =>
  context.client
    .of(daemonSets)
    .patch(ref(context), 'strategic', { spec: { template: { metadata: { annotations: { version } }, spec: { containers: [{ name: 'main', image }] } } } })

async function labelNode({ client }: BehaviourContext, node: string, label: string, value: string | null): Promise<void> {
  await client.of(nodes).patch({ name: node }, 'merge', { metadata: { labels: { [label]: value } } })
}

const revisionsOf = async ({ client, namespace }: BehaviourContext) =>
  [...(await client.of(controllerRevisions).list({ namespace, labelSelector: 'daemon=yes' })).items].sort((a, b) => a.revision - b.revision)

export const daemonSet: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'DaemonSet',
  rows: ['CTL-06'],
  behaviours: [
    {
      name: 'simple daemon runs, deleted pod returns',
      run: async (context) => {
        await create(context)
        await runsOn(context, context.nodes)
        const [pod] = await members(context)
        await context.client.of(pods).delete({ namespace: context.namespace, name: pod?.metadata.name ?? '' })
        await context.waitUntilGone(pods, pod?.metadata.name ?? '')
        await runsOn(context, context.nodes)
      },
    },
    {
      name: 'node selector moves daemons',
      run: async (context) => {
        const [one = '', two = ''] = context.nodes
        const label = context.unique('example.com/color')
        for (const node of context.nodes) context.cleanUp(() => labelNode(context, node, label, null))
        await create(context, { template: templateOf(labels, { ...sleeper, spec: { nodeSelector: { [label]: 'blue' } } }) })
        await context.waitForObject(
          daemonSets,
          'daemon',
          'wants no node',
          ({ status }) => status?.observedGeneration === 1 && status.desiredNumberScheduled === 0,
        )
        await labelNode(context, one, label, 'blue')
        await runsOn(context, [one])
        await labelNode(context, one, label, 'green')
        await runsOn(context, [])
        const spec = { template: { spec: { nodeSelector: { [label]: 'green' } } }, updateStrategy: { type: 'RollingUpdate' } }
        await context.client.of(daemonSets).patch(ref(context), 'strategic', { spec })
        await runsOn(context, [one])
        await labelNode(context, two, label, 'green')
        await runsOn(context, [one, two])
      },
    },
    {
      name: 'failed daemon pod recreated',
      run: async (context) => {
        await create(context)
        await runsOn(context, context.nodes)
        const [pod] = await members(context)
        const name = pod?.metadata.name ?? ''
        await context.client.of(pods).patch({ namespace: context.namespace, name }, 'merge', { status: { phase: 'Failed' } }, { subresource: 'status' })
        await context.eventually(
          'another in its place',
          () => members(context),
          (seen) => seen.every(({ metadata }) => metadata.uid !== pod?.metadata.uid),
        )
        await runsOn(context, context.nodes)
      },
    },
    {
      name: 'RollingUpdate',
      run: async (context) => {
        await create(context, { updateStrategy: { type: 'RollingUpdate' } })
        await runsOn(context, context.nodes)
        await rolledOut(context)
        const [first] = await revisionsOf(context)
        await roll(context, busybox, 'two')
        await rolledOut(context)
        const revisions = await revisionsOf(context)
        assert.deepEqual(
          revisions.map(({ revision }) => revision),
          [1, 2],
        )
        assert.equal(revisions[0]?.metadata.name, first?.metadata.name)
        const hash = revisions[1]?.metadata.labels?.['controller-revision-hash']
        for (const { metadata } of await members(context)) assert.equal(metadata.labels?.['controller-revision-hash'], hash)
      },
    },
    {
      name: 'rollback without needless restarts',
      run: async (context) => {
        await create(context, { updateStrategy: { type: 'RollingUpdate' } })
        await runsOn(context, context.nodes)
        await rolledOut(context)
        const before = new Map((await members(context)).map((pod) => [pod.spec.nodeName, pod]))
        await roll(context, 'skiff.test/absent:1', 'two')
        const broken = await context.eventually(
          'one that does not come up',
          () => members(context),
          (seen) => seen.some(({ spec }) => spec.containers[0]?.image?.includes('absent')),
        )
        // The one that makes room has ended by now, but may still be listed.
        const untouched = broken.filter(({ metadata: { uid, deletionTimestamp } }) => {
          return !deletionTimestamp && [...before.values()].some((pod) => pod.metadata.uid === uid)
        })
        assert.equal(untouched.length, 1, 'one at a time')
        await context.kubectl(['rollout', 'undo', 'daemonset/daemon'])
        await rolledOut(context)
        const after = await members(context)
        for (const { metadata } of untouched) {
          const same = after.find((pod) => pod.metadata.uid === metadata.uid)
          assert.ok(same, 'it was never touched')
          assert.equal(same.status?.containerStatuses?.[0]?.restartCount, 0)
        }
      },
    },
    {
      name: 'list + deletecollection',
      run: async (context) => {
        const { client, namespace } = context
        await create(context)
        await runsOn(context, context.nodes)
        const list = async () =>
          (await client.of(daemonSets).list({ labelSelector: 'daemon=yes' })).items.filter(({ metadata }) => metadata.namespace === namespace)
        assert.equal((await list()).length, 1)
        await client.of(daemonSets).deleteCollection({ namespace, labelSelector: 'daemon=yes' })
        await context.eventually('none left', list, (items) => items.length === 0)
      },
    },
    {
      name: 'status read/update/patch',
      run: async (context) => {
        await create(context)
        await runsOn(context, context.nodes)
        await writesStatus(context, daemonSets, 'daemon')
      },
    },
  ],
}

export const controllerRevision: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'ControllerRevision',
  rows: ['CTL-06'],
  behaviours: [
    {
      name: 'lifecycle driven by a DaemonSet update',
      run: async (context) => {
        const { client, namespace } = context
        await create(context)
        await runsOn(context, context.nodes)
        const [initial] = await revisionsOf(context)
        assert.ok(initial)
        const patched = await client
          .of(controllerRevisions)
          .patch({ namespace, name: initial.metadata.name ?? '' }, 'merge', { metadata: { labels: { [initial.metadata.name ?? '']: 'patched' } } })
        assert.equal(patched.metadata.labels?.[initial.metadata.name ?? ''], 'patched')
        const copy = { metadata: { name: 'copy', labels }, data: initial.data, revision: initial.revision + 1 }
        await context.create(controllerRevisions, copy as never)
        await client.of(controllerRevisions).delete({ namespace, name: 'copy' })
        await context.waitUntilGone(controllerRevisions, 'copy')
        await roll(context, busybox, 'two')
        await rolledOut(context)
        const both = await revisionsOf(context)
        assert.equal(both.length, 2)
        const replaced = await client.of(controllerRevisions).update({ ...(both[1] as (typeof both)[number]), revision: 3 })
        assert.equal(replaced.revision, 3)
        await client.of(controllerRevisions).deleteCollection({ namespace, labelSelector: `${initial.metadata.name}=patched` })
        await context.waitUntilGone(controllerRevisions, initial.metadata.name ?? '')
      },
    },
  ],
}
