/** Stateful sets: one after another, each with its name, revision by revision. Upstream: test/e2e/apps/statefulset.go. */
import assert from 'node:assert/strict'
import type { StatefulSetSpec } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { pods, services, statefulSets } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { type BehaviourContext, busybox, isReady } from '../context.ts'
import { scalesBySubresource, selectorOf, sleeper, templateOf, writesStatus } from '../workloads.ts'

const labels = { app: 'web' }
const ref = ({ namespace }: BehaviourContext) => ({ namespace, name: 'web' })

/** Ready as long as a file is there, which a test takes away and puts back. */
const probed = {
  script: 'touch /tmp/ready; trap "exit 0" TERM; sleep 600 & wait',
  container: { readinessProbe: { exec: { command: ['test', '-f', '/tmp/ready'] }, periodSeconds: 1, failureThreshold: 1 } },
}
const breakPod = ({ execText }: BehaviourContext, name: string) => execText(name, 'rm /tmp/ready')
const mendPod = ({ execText }: BehaviourContext, name: string) => execText(name, 'touch /tmp/ready')

async function create(context: BehaviourContext, replicas: number, spec: Partial<StatefulSetSpec> = {}) {
  await context.create(services, { metadata: { name: 'heads' }, spec: { clusterIP: 'None', selector: labels, ports: [{ port: 80 }] } })
  return context.create(statefulSets, {
    metadata: { name: 'web', labels },
    spec: { replicas, serviceName: 'heads', selector: selectorOf(labels), template: templateOf(labels, probed), ...spec },
  })
}

const status = (context: BehaviourContext, what: string, holds: (status: NonNullable<Awaited<ReturnType<typeof read>>>) => boolean) =>
  context.eventually(
    what,
    () => read(context),
    (seen) => seen !== undefined && holds(seen),
  )
const read = async ({ get }: BehaviourContext) => (await get(statefulSets, 'web')).status

const ready = (context: BehaviourContext, count: number, all = count) =>
  status(
    context,
    `${count} ready of ${all}`,
    ({ replicas, readyReplicas, availableReplicas }) => replicas === all && (readyReplicas ?? 0) === count && (availableReplicas ?? 0) === count,
  )

const members = async ({ client, namespace }: BehaviourContext): Promise<Frozen<Pod>[]> =>
  [...(await client.of(pods).list({ namespace, labelSelector: 'app=web' })).items].sort((a, b) => (a.metadata.name ?? '').localeCompare(b.metadata.name ?? ''))
const revisions = async (context: BehaviourContext) => (await members(context)).map(({ metadata }) => metadata.labels?.['controller-revision-hash'])

const change = (context: BehaviourContext, spec: object) => context.client.of(statefulSets).patch(ref(context), 'strategic', { spec })
const roll = (context: BehaviourContext, version: string) => change(context, { template: { metadata: { annotations: { version } } } })

export const statefulSet: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'StatefulSet',
  rows: ['CTL-05'],
  behaviours: [
    {
      name: 'ordered scaling halts on unhealthy',
      run: async (context) => {
        await create(context, 1)
        await ready(context, 1)
        await breakPod(context, 'web-0')
        await context.waitForPod('web-0', 'is not ready', (pod) => !isReady(pod))
        await change(context, { replicas: 3 })
        const observed = (generation: number | undefined) =>
          status(context, 'has seen it', ({ observedGeneration }) => (observedGeneration ?? 0) >= (generation ?? 0))
        await observed((await context.get(statefulSets, 'web')).metadata.generation)
        assert.equal((await members(context)).length, 1)
        await mendPod(context, 'web-0')
        await ready(context, 3)
        const created = (await members(context)).map(({ metadata }) => metadata.creationTimestamp ?? '')
        assert.deepEqual(created, [...created].sort())
        for (const name of ['web-0', 'web-1', 'web-2']) {
          await breakPod(context, name)
          await context.waitForPod(name, 'is not ready', (pod) => !isReady(pod))
        }
        const { metadata } = await change(context, { replicas: 0 })
        await observed(metadata.generation)
        const staying = async () => (await members(context)).filter((pod) => !pod.metadata.deletionTimestamp).length
        assert.equal(await staying(), 3, 'an unhealthy pod stays while one before it is unhealthy')
        await mendPod(context, 'web-0')
        await ready(context, 1, 3)
        assert.equal(await staying(), 3, 'web-2 waits for web-1')
        // Now web-2 is the first unhealthy pod, which is deleted as it is; the others follow in their order.
        await mendPod(context, 'web-1')
        await status(context, 'no pod is left', ({ replicas }) => replicas === 0)
      },
    },
    {
      name: 'parallel burst scaling with unhealthy pods',
      run: async (context) => {
        await create(context, 1, { podManagementPolicy: 'Parallel' })
        await ready(context, 1)
        await breakPod(context, 'web-0')
        await context.waitForPod('web-0', 'is not ready', (pod) => !isReady(pod))
        await change(context, { replicas: 3 })
        await status(context, 'three, the first of them not ready', ({ replicas, readyReplicas }) => replicas === 3 && readyReplicas === 2)
        await change(context, { replicas: 0 })
        await status(context, 'nobody is left', ({ replicas }) => replicas === 0)
      },
    },
    {
      name: 'evicted pod recreated',
      run: async (context) => {
        const [node = ''] = context.nodes
        const port = { ports: [{ containerPort: 21017, hostPort: 21017 }] }
        // Another pod holds the port on the node that both name, so the kubelet refuses the second pod.
        await context.readyPod({ name: 'holder', ...sleeper, container: port, spec: { nodeName: node } })
        await create(context, 1, { template: templateOf(labels, { ...sleeper, container: port, spec: { nodeName: node } }) })
        const failed = await context.eventually(
          'a refused pod, or one that came after it',
          () => members(context),
          ([pod]) => pod?.status?.phase === 'Failed',
        )
        const [refused] = failed
        await context.client.of(pods).delete({ namespace: context.namespace, name: 'holder' })
        const running = await context.eventually(
          'the next one to run',
          () => members(context),
          ([pod]) => pod?.status?.phase === 'Running',
        )
        assert.notEqual(running[0]?.metadata.uid, refused?.metadata.uid)
        assert.equal(running[0]?.metadata.name, 'web-0')
      },
    },
    {
      name: 'rolling update + rollback detects revisions',
      seconds: 180,
      run: async (context) => {
        await create(context, 3)
        await ready(context, 3)
        const first = (await read(context))?.currentRevision
        assert.deepEqual(await revisions(context), Array(3).fill(first))
        const rolled = async (what: string) => {
          const after = await status(
            context,
            what,
            ({ currentRevision, updateRevision, updatedReplicas, readyReplicas }) =>
              currentRevision === updateRevision && readyReplicas === 3 && (updatedReplicas ?? 3) === 3,
          )
          await context.eventually(
            'all of it',
            () => revisions(context),
            (seen) => seen.every((one) => one === after?.currentRevision),
          )
          return after?.currentRevision
        }
        await roll(context, 'two')
        await status(context, 'a new revision', ({ currentRevision, updateRevision }) => currentRevision !== updateRevision)
        const second = await rolled('the update')
        assert.notEqual(second, first)
        const order = (await members(context)).map(({ metadata }) => metadata.creationTimestamp ?? '').reverse()
        assert.deepEqual(order, [...order].sort(), 'the last comes first')
        // Back to the first template is back to the first revision.
        await change(context, { template: { metadata: { annotations: { version: null } } } })
        await status(context, 'the first revision again', ({ updateRevision }) => updateRevision === first)
        assert.equal(await rolled('the way back'), first)
      },
    },
    {
      name: 'partitioned canary + phased rollout',
      seconds: 180,
      run: async (context) => {
        const partition = (value: number): Pick<StatefulSetSpec, 'updateStrategy'> => ({
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: value } },
        })
        await create(context, 3, partition(3))
        await ready(context, 3)
        const first = (await read(context))?.currentRevision
        await roll(context, 'two')
        const next = (await status(context, 'a new revision', ({ updateRevision }) => updateRevision !== first))?.updateRevision
        assert.deepEqual(await revisions(context), [first, first, first], 'no pod is at or above the partition')
        for (const [value, wanted] of [
          [2, [first, first, next]],
          [1, [first, next, next]],
          [0, [next, next, next]],
        ] as const) {
          await change(context, partition(value))
          await context.eventually(
            `the pods from ${value} on`,
            async () => [await revisions(context), (await read(context))?.readyReplicas] as const,
            ([seen, count]) => seen.join() === wanted.join() && count === 3,
          )
        }
        // A pod below the partition that is deleted is recreated at its old revision.
        await change(context, partition(3))
      },
    },
    {
      name: 'scale subresource',
      run: async (context) => {
        await create(context, 1)
        await ready(context, 1)
        await scalesBySubresource(context, statefulSets, 'web', (count) => ready(context, count))
      },
    },
    {
      name: 'list/patch/deletecollection',
      run: async (context) => {
        const { client, namespace } = context
        await create(context, 1)
        await ready(context, 1)
        const list = async () =>
          (await client.of(statefulSets).list({ labelSelector: 'app=web' })).items.filter(({ metadata }) => metadata.namespace === namespace)
        assert.equal((await list()).length, 1)
        await client.of(statefulSets).patch(ref(context), 'strategic', {
          metadata: { labels: { patched: 'yes' } },
          spec: { replicas: 2, template: { spec: { containers: [{ name: 'main', image: busybox }] } } },
        })
        await ready(context, 2)
        await client.of(statefulSets).deleteCollection({ namespace, labelSelector: 'patched=yes' })
        await context.eventually('none left', list, (items) => items.length === 0)
      },
    },
    {
      name: 'status endpoints',
      run: async (context) => {
        await create(context, 1)
        await ready(context, 1)
        await writesStatus(context, statefulSets, 'web')
      },
    },
  ],
}
