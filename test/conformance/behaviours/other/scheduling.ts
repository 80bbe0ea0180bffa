/** Which node a pod gets, which it does not get, and who makes room. Upstream: test/e2e/scheduling/{predicates,preemption}.go. */
import assert from 'node:assert/strict'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { nodes, pods, priorityClasses, replicaSets } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'
import { selectorOf, sleeper, templateOf } from '../workloads.ts'

const resource = 'example.com/fakecpu'

/** Gives the first node something to count that nothing else uses. */
async function addResource(context: BehaviourContext, amount: number): Promise<string> {
  const [node = ''] = context.nodes
  const key = resource.replace('/', '~1')
  const change = (operations: object[]) => context.client.of(nodes).patch({ name: node }, 'json', operations, { subresource: 'status' })
  const paths = ['capacity', 'allocatable'].map((list) => `/status/${list}/${key}`)
  await change(paths.map((path) => ({ op: 'add', path, value: String(amount) })))
  context.cleanUp(() => change(paths.map((path) => ({ op: 'remove', path }))))
  return node
}

const asking = (amount: number) => ({ resources: { requests: { [resource]: String(amount) }, limits: { [resource]: String(amount) } } })

const unschedulable = (pod: Frozen<Pod>) => pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False')

async function createClasses(context: BehaviourContext, values: readonly number[]): Promise<string[]> {
  return Promise.all(
    values.map(async (value) => {
      const name = context.unique(`p${value}`)
      await context.client.of(priorityClasses).create({ metadata: { name }, value })
      context.cleanUp(() => context.client.of(priorityClasses).delete({ name }))
      return name
    }),
  )
}

export const predicates: BehaviourGroup = {
  sig: 'sig-scheduling',
  title: 'Predicates',
  rows: ['SCH-05'],
  behaviours: [
    {
      name: 'resource limits exhaust node',
      alone: true,
      run: async (context) => {
        await addResource(context, 10)
        await context.readyPod({ name: 'most', ...sleeper, container: asking(7) })
        await context.createPod({ name: 'too-much', ...sleeper, container: asking(4) })
        const pod = await context.waitForPod('too-much', 'cannot be scheduled', (seen) => unschedulable(seen) !== undefined)
        assert.equal(unschedulable(pod)?.reason, 'Unschedulable')
        assert.match(unschedulable(pod)?.message ?? '', new RegExp(`2 Insufficient ${resource}`))
        await context.readyPod({ name: 'rest', ...sleeper, container: asking(3) })
      },
    },
    {
      name: 'nodeSelector mismatch stays pending',
      run: async (context) => {
        await context.createPod({ name: 'nowhere', ...sleeper, spec: { nodeSelector: { label: 'nonempty' } } })
        const pod = await context.waitForPod('nowhere', 'cannot be scheduled', (seen) => unschedulable(seen) !== undefined)
        assert.match(unschedulable(pod)?.message ?? '', /2 node\(s\) didn't match Pod's node affinity\/selector/)
      },
    },
    {
      name: 'nodeSelector match',
      run: async (context) => {
        const [, node = ''] = context.nodes
        const label = context.unique('example.com')
        const change = (value: string | null) => context.client.of(nodes).patch({ name: node }, 'merge', { metadata: { labels: { [label]: value } } })
        await change('42')
        context.cleanUp(() => change(null))
        const pod = await context.readyPod({ ...sleeper, spec: { nodeSelector: { [label]: '42' } } })
        assert.equal(pod.spec.nodeName, node)
      },
    },
    {
      name: 'hostPort conflict with 0.0.0.0',
      run: async (context) => {
        const [node = ''] = context.nodes
        const nodeSelector = { 'kubernetes.io/hostname': node }
        const at = (hostIP: string | undefined) => ({ ports: [{ containerPort: 8080, hostPort: 54322, ...(hostIP ? { hostIP } : {}) }] })
        await context.readyPod({ name: 'everywhere', ...sleeper, container: at(undefined), spec: { nodeSelector } })
        await context.createPod({ name: 'also', ...sleeper, container: at('127.0.0.1'), spec: { nodeSelector } })
        const pod = await context.waitForPod('also', 'cannot be scheduled', (seen) => unschedulable(seen) !== undefined)
        assert.match(unschedulable(pod)?.message ?? '', /didn't have free ports for the requested pod ports/)
      },
    },
  ],
}

export const preemption: BehaviourGroup = {
  sig: 'sig-scheduling',
  title: 'Preemption',
  rows: ['SCH-13'],
  behaviours: [
    {
      name: 'basic preemption',
      alone: true,
      run: async (context) => {
        await addResource(context, 2)
        const [low = '', high = ''] = await createClasses(context, [1, 100])
        await context.readyPod({ name: 'low', ...sleeper, container: asking(2), spec: { priorityClassName: low } })
        const winner = await context.readyPod({ name: 'high', ...sleeper, container: asking(2), spec: { priorityClassName: high } })
        assert.equal(winner.spec.nodeName, context.nodes[0])
        await context.waitUntilGone(pods, 'low')
      },
    },
    {
      name: 'critical pod preempts',
      alone: true,
      run: async (context) => {
        await addResource(context, 2)
        const [low = ''] = await createClasses(context, [1])
        await context.readyPod({ name: 'low', ...sleeper, container: asking(2), spec: { priorityClassName: low } })
        await context.readyPod({ name: 'critical', ...sleeper, container: asking(2), spec: { priorityClassName: 'system-cluster-critical' } })
        await context.waitUntilGone(pods, 'low')
      },
    },
    {
      name: 'victim gets DisruptionTarget condition',
      alone: true,
      run: async (context) => {
        await addResource(context, 1)
        const [low = '', high = ''] = await createClasses(context, [1, 100])
        const victim = await context.readyPod({ name: 'victim', ...sleeper, container: asking(1), spec: { priorityClassName: low } })
        // A finalizer keeps it to be looked at.
        const finalizers = (value: string[] | null) =>
          context.client.of(pods).patch({ namespace: context.namespace, name: 'victim' }, 'merge', { metadata: { finalizers: value } })
        await finalizers(['example.com/look'])
        context.cleanUp(() => finalizers(null))
        assert.equal(victim.spec.nodeName, context.nodes[0])
        await context.createPod({ name: 'high', ...sleeper, container: asking(1), spec: { priorityClassName: high } })
        const seen = await context.waitForPod('victim', 'has its condition', ({ status }) =>
          (status?.conditions ?? []).some(({ type }) => type === 'DisruptionTarget'),
        )
        const condition = seen.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
        assert.deepEqual([condition?.status, condition?.reason], ['True', 'PreemptionByScheduler'])
      },
    },
    {
      name: '4-level ReplicaSet preemption path',
      alone: true,
      run: async (context) => {
        const node = await addResource(context, 5)
        const levels = await createClasses(context, [1, 2, 3, 4])
        const ask = [1, 1, 1, 3]
        const wanted = [5, 2, 1, 1]
        const create = (level: number, replicas: number) => {
          const labels = { level: String(level) }
          const pod = {
            ...sleeper,
            container: asking(ask[level] ?? 1),
            spec: { priorityClassName: levels[level] ?? '', nodeSelector: { 'kubernetes.io/hostname': node } },
          }
          const spec = { replicas, selector: selectorOf(labels), template: templateOf(labels, pod) }
          return context.create(replicaSets, { metadata: { name: `level-${level}` }, spec })
        }
        const available = (level: number, count: number) =>
          context.waitForObject(replicaSets, `level-${level}`, `has ${count} available`, ({ status }) => (status?.availableReplicas ?? 0) === count)
        await create(0, wanted[0] ?? 0)
        await available(0, 5)
        // Each level takes its room from the lowest.
        await create(1, 2)
        await available(1, 2)
        await available(0, 3)
        await create(2, 1)
        await available(2, 1)
        await available(0, 2)
        await create(3, 1)
        await available(3, 1)
        // Three more: two of the lowest and one of the next.
        await available(0, 0)
        await available(1, 1)
        await available(2, 1)
      },
    },
  ],
}
