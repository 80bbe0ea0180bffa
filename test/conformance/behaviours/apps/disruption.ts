/** How many pods of an application may go at once. Upstream: test/e2e/apps/disruption.go. */
import assert from 'node:assert/strict'
import { podDisruptionBudgets, pods } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'
import { selectorOf, sleeper } from '../workloads.ts'

const labels = { guarded: 'yes' }
const ref = ({ namespace }: BehaviourContext) => ({ namespace, name: 'budget' })

const create = (context: BehaviourContext, minAvailable: number) =>
  context.create(podDisruptionBudgets, { metadata: { name: 'budget' }, spec: { minAvailable, selector: selectorOf(labels) } })

const run = (context: BehaviourContext, count: number) =>
  Promise.all(Array.from({ length: count }, (_, index) => context.readyPod({ name: `pod-${index}`, labels, ...sleeper })))

const allows = (context: BehaviourContext, count: number) =>
  context.waitForObject(
    podDisruptionBudgets,
    'budget',
    `allows ${count}`,
    ({ metadata, status }) => status?.observedGeneration === metadata.generation && status?.disruptionsAllowed === count,
  )

const evict = ({ client, namespace }: BehaviourContext, name: string) =>
  client.of(pods).createSubresource({ namespace, name }, 'eviction', { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } })

export const disruption: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'PodDisruptionBudget (pods)',
  rows: ['CTL-17'],
  behaviours: [
    {
      name: 'eviction blocked until PDB allows',
      run: async (context) => {
        await run(context, 3)
        await create(context, 3)
        await allows(context, 0)
        await assert.rejects(evict(context, 'pod-0'), /Cannot evict pod as it would violate the pod's disruption budget\./)
        await context.client.of(podDisruptionBudgets).patch(ref(context), 'merge', { spec: { minAvailable: 2 } })
        await allows(context, 1)
        await evict(context, 'pod-0')
        await context.waitUntilGone(pods, 'pod-0')
        await allows(context, 0)
        await assert.rejects(evict(context, 'pod-1'), /disruption budget/)
        await context.client.of(podDisruptionBudgets).delete(ref(context))
        await context.waitUntilGone(podDisruptionBudgets, 'budget')
        await evict(context, 'pod-1')
      },
    },
    {
      name: 'status shows allowed disruptions',
      run: async (context) => {
        await create(context, 1)
        await run(context, 2)
        const { status } = await allows(context, 1)
        assert.deepEqual([status?.currentHealthy, status?.desiredHealthy, status?.expectedPods], [2, 1, 2])
      },
    },
    {
      name: 'status update/patch',
      run: async (context) => {
        const { client } = context
        await run(context, 1)
        await create(context, 1)
        await allows(context, 0)
        const marked = { 'pod-0': new Date(0).toISOString().replace('.000', '') }
        const updated = await context.eventually(
          'the replaced status',
          async () => {
            const current = await client.of(podDisruptionBudgets).get(ref(context))
            return client
              .of(podDisruptionBudgets)
              .updateStatus({ ...current, status: { ...(current.status as NonNullable<typeof current.status>), disruptedPods: marked } })
              .catch(() => undefined)
          },
          (object) => object !== undefined,
        )
        assert.deepEqual(updated?.status?.disruptedPods, marked)
        const patched = await client.of(podDisruptionBudgets).patch(ref(context), 'merge', { status: { disruptedPods: null } }, { subresource: 'status' })
        assert.equal(patched.status?.disruptedPods, undefined)
      },
    },
  ],
}
