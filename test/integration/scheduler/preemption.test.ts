/** Preemption through the real API server: who goes, what is said about it, and that the pod gets the place made for it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { events, podDisruptionBudgets, pods } from '#client/builtIn'
import { addNode, isBound, isUnschedulable, newNode, newPod, perTest, scheduled, startScheduler, untilPods } from './cluster.ts'

const own = perTest()
const { create, until } = own

const small = { cpu: '1', memory: '1Gi', pods: '10' }
/** No kubelet runs the pods, so a grace period would never end. */
const atOnce = { terminationGracePeriodSeconds: 0 }

test('SCH-13 a more important pod takes the place of the least important one, and the victim has the reason in its status', async () => {
  await addNode(own.api.client, newNode('a', small))
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('low', '500m', { priority: 1 }))
  await create(newPod('middle', '500m', { priority: 5 }))
  await untilPods(own.api.client, ['low', 'middle'], isBound)
  await create(newPod('high', '500m', { priority: 10 }))
  // No kubelet ends the victim here, so it stays with the condition that the scheduler set.
  const victim = await until('low', (pod) => pod.metadata.deletionTimestamp !== undefined)
  const { status, reason, message } = victim.status?.conditions?.find(({ type }) => type === 'DisruptionTarget') ?? {}
  assert.deepEqual([status, reason, message], ['True', 'PreemptionByScheduler', 'default-scheduler: preempting to accommodate a higher priority pod'])
  const waiting = await until('high', (pod) => pod.status?.nominatedNodeName === 'a')
  assert.equal(scheduled(waiting)?.message, '0/1 nodes are available: 1 Insufficient cpu.')
  await own.api.client.of(pods).delete({ namespace: 'default', name: 'low' }, { gracePeriodSeconds: 0 })
  const placed = await until('high', isBound)
  assert.equal(placed.spec.nodeName, 'a')
  assert.equal((await own.api.client.of(pods).get({ namespace: 'default', name: 'middle' })).spec.nodeName, 'a')
  const preempted = await eventOf('low', 'Preempted')
  assert.deepEqual([preempted.type, preempted.message], ['Normal', `Preempted by pod ${placed.metadata.uid} on node a`])
})

async function eventOf(name: string, reason: string) {
  const signal = AbortSignal.timeout(60_000)
  const list = await own.api.client.of(events).list({ namespace: 'default' })
  const right = (event: (typeof list.items)[number]) => event.involvedObject.name === name && event.reason === reason
  const there = list.items.find(right)
  if (there) return there
  for await (const batch of own.api.client.of(events).watch({ namespace: 'default', resourceVersion: list.metadata.resourceVersion, signal })) {
    const found = batch.map(({ object }) => object).find(right)
    if (found) return found
  }
  throw new Error(`no event ${reason} of ${name}`)
}

test('SCH-13 several victims are deleted, and the pod is bound when the last is gone', async () => {
  await addNode(own.api.client, newNode('a', small))
  own.scheduler = startScheduler(own.api.client)
  const low = Array.from({ length: 5 }, (_, i) => `low-${i}`)
  for (const name of low) await create(newPod(name, '200m', { priority: 1, ...atOnce }))
  await untilPods(own.api.client, low, isBound)
  await create(newPod('high', '800m', { priority: 10 }))
  assert.equal((await until('high', isBound)).spec.nodeName, 'a')
  const left = (await own.api.client.of(pods).list({ namespace: 'default' })).items.filter(isBound).map(({ metadata }) => metadata.name)
  assert.equal(left.length, 2, `${left}`)
})

test('SCH-13 a disruption budget is spared where another node can do without breaking one', async () => {
  for (const name of ['a', 'b']) await addNode(own.api.client, newNode(name, small))
  const onNode = (name: string) => ({ nodeName: name })
  // But for the budget, the less important pod would go.
  for (const [name, priority] of [
    ['a', 1],
    ['b', 3],
  ] as const) {
    const pod = newPod(`low-${name}`, '900m', { priority, ...atOnce, ...onNode(name) })
    await create({ ...pod, metadata: { ...pod.metadata, labels: { app: name } } })
  }
  // No controller computes the budget's status here: it allows no disruptions.
  await own.api.client.of(podDisruptionBudgets).create({
    metadata: { name: 'guard', namespace: 'default' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'a' } } },
  })
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('high', '900m', { priority: 10 }))
  assert.equal((await until('high', isBound)).spec.nodeName, 'b')
  assert.equal((await own.api.client.of(pods).get({ namespace: 'default', name: 'low-a' })).spec.nodeName, 'a')
})

const futile: { name: string; pod: Pod; message: string }[] = [
  {
    name: 'all pods on the node have at least its priority',
    pod: newPod('waits', '900m', { priority: 5 }),
    message:
      '0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
  },
  {
    name: 'no victim makes the node bigger',
    pod: newPod('waits', '5', { priority: 10 }),
    message:
      '0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
  },
  {
    name: 'its preemptionPolicy is Never',
    pod: newPod('waits', '900m', { priority: 10, preemptionPolicy: 'Never' }),
    message: '0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.',
  },
]
for (const { name, pod, message } of futile) {
  test(`SCH-13 no pod is preempted: ${name}`, async () => {
    await addNode(own.api.client, newNode('a', small))
    own.scheduler = startScheduler(own.api.client)
    await create(newPod('there', '900m', { priority: 5, ...atOnce }))
    await until('there', isBound)
    await create(pod)
    assert.equal(scheduled(await until('waits', isUnschedulable))?.message, message)
    assert.equal((await own.api.client.of(pods).get({ namespace: 'default', name: 'there' })).spec.nodeName, 'a')
  })
}

test('SCH-13 room made by preemption is not given to a later pod of lower priority', async () => {
  await addNode(own.api.client, newNode('a', small))
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('low', '900m', { priority: 1 }))
  await until('low', isBound)
  await create(newPod('high', '600m', { priority: 10 }))
  await until('high', (pod) => pod.status?.nominatedNodeName === 'a')
  await create(newPod('late', '600m', { priority: 5 }))
  await until('late', isUnschedulable)
  await own.api.client.of(pods).delete({ namespace: 'default', name: 'low' }, { gracePeriodSeconds: 0 })
  assert.equal((await until('high', isBound)).spec.nodeName, 'a')
  assert.equal((await own.api.client.of(pods).get({ namespace: 'default', name: 'late' })).spec.nodeName ?? '', '')
})
