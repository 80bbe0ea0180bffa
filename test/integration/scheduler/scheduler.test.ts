/** Scheduling through the real API server: conditions, events, what frees a pod, and restarts in the middle of the work. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { events, nodes, pods, services } from '#client/builtIn'
import type { TestApiServer } from '#testing/apiServer'
import { addNode, isBound, isUnschedulable, newNode, newPod, perTest, scheduled, startScheduler, untilPods } from './cluster.ts'

const own = perTest()
const { create, until } = own

/** Events of a pod, once there are as many: the recorder writes in the background. */
async function eventsOf(name: string, count: number) {
  const signal = AbortSignal.timeout(60_000)
  const list = await own.api.client.of(events).list({ namespace: 'default' })
  const found = list.items.filter((event) => event.involvedObject.name === name)
  if (found.length >= count) return found
  for await (const batch of own.api.client.of(events).watch({ namespace: 'default', resourceVersion: list.metadata.resourceVersion, signal })) {
    for (const { type, object } of batch) if (type === 'ADDED' && object.involvedObject.name === name) found.push(object)
    if (found.length >= count) return found
  }
  throw new Error(`${name} has only ${found.length} events`)
}

test('SCH-01 a pod is bound through the API, with its condition and its event', async () => {
  await addNode(own.api.client, newNode('a'))
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('web'))
  const pod = await until('web', isBound)
  assert.equal(pod.spec.nodeName, 'a')
  const { type, status } = scheduled(pod) ?? {}
  assert.deepEqual({ type, status }, { type: 'PodScheduled', status: 'True' })
  const [event] = await eventsOf('web', 1)
  assert.deepEqual(
    [event?.type, event?.reason, event?.message, event?.involvedObject.uid],
    ['Normal', 'Scheduled', 'Successfully assigned default/web to a', pod.metadata.uid],
  )
  // As upstream's scheduler, through events.k8s.io: who reports is no source, and the time has microseconds.
  assert.deepEqual(
    [event?.action, event?.reportingComponent, event?.reportingInstance, event?.source, event?.count],
    ['Binding', 'default-scheduler', 'default-scheduler-host', {}, undefined],
  )
  assert.match(event?.eventTime ?? '', /T\d\d:\d\d:\d\d\.\d{6}Z$/)
})

test('SCH-18 replicas of a service are spread over the nodes by default, even if one node has far more room', async () => {
  const sizes = { a: '64', b: '4', c: '4' }
  for (const [name, cpu] of Object.entries(sizes)) {
    const node = newNode(name, { cpu, memory: '8Gi', pods: '110' })
    await addNode(own.api.client, { ...node, metadata: { name, labels: { 'kubernetes.io/hostname': name } } })
  }
  own.scheduler = startScheduler(own.api.client)
  const placeThree = async (app: string): Promise<string> => {
    const used: string[] = []
    for (const i of [1, 2, 3]) {
      const pod = newPod(`${app}-${i}`, '1')
      await create({ ...pod, metadata: { ...pod.metadata, labels: { app } } })
      used.push((await until(`${app}-${i}`, isBound)).spec.nodeName ?? '')
    }
    return used.sort().join()
  }
  assert.equal(await placeThree('alone'), 'a,a,a')
  await own.api.client.of(services).create({ metadata: { namespace: 'default', name: 'web' }, spec: { selector: { app: 'web' }, ports: [{ port: 80 }] } })
  assert.equal(await placeThree('web'), 'a,b,c')
})

test('SCH-07 a pod that fits nowhere gets condition and event, and a node when the taint goes', async () => {
  const taint = { key: 'dedicated', value: 'db', effect: 'NoSchedule' }
  await addNode(own.api.client, newNode('a', undefined, { taints: [taint] }))
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('web'))
  const waiting = await until('web', isUnschedulable)
  const message = '0/1 nodes are available: 1 node(s) had untolerated taint(s).'
  const { reason, message: text } = scheduled(waiting) ?? {}
  assert.deepEqual([reason, text?.startsWith(message.slice(0, -1))], ['Unschedulable', true])
  const [event] = await eventsOf('web', 1)
  assert.deepEqual([event?.type, event?.reason, event?.message], ['Warning', 'FailedScheduling', text])
  await own.api.client.of(nodes).patch({ name: 'a' }, 'merge', { spec: { taints: null } })
  const pod = await until('web', isBound)
  assert.equal(scheduled(pod)?.status, 'True')
})

test('SCH-03 the same refusal again writes no second condition', async () => {
  await addNode(own.api.client, newNode('a', { cpu: '1', memory: '1Gi', pods: '10' }))
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('holder', '800m'))
  await until('holder', isBound)
  await create(newPod('big', '900m'))
  const first = await until('big', isUnschedulable)
  // Room for something, but not enough: the pod is tried again and refused with the same words.
  await create(newPod('small', '100m'))
  await until('small', isBound)
  await own.api.client.of(pods).delete({ namespace: 'default', name: 'small' }, { gracePeriodSeconds: 0 })
  await create(newPod('probe', '150m'))
  await until('probe', isBound)
  const again = await own.api.client.of(pods).get({ namespace: 'default', name: 'big' })
  assert.equal(again.metadata.resourceVersion, first.metadata.resourceVersion)
  await own.api.client.of(pods).delete({ namespace: 'default', name: 'probe' }, { gracePeriodSeconds: 0 })
  await own.api.client.of(pods).delete({ namespace: 'default', name: 'holder' }, { gracePeriodSeconds: 0 })
  assert.equal((await until('big', isBound)).spec.nodeName, 'a')
})

test('SCH-17 a new node takes waiting pods; a deleted one gets no more', async () => {
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('early'))
  await until('early', isUnschedulable)
  await addNode(own.api.client, newNode('a'))
  assert.equal((await until('early', isBound)).spec.nodeName, 'a')
  await addNode(own.api.client, newNode('b'))
  await own.api.client.of(nodes).delete({ name: 'a' })
  await create(newPod('late-1'))
  await create(newPod('late-2'))
  const placed = await untilPods(own.api.client, ['late-1', 'late-2'], isBound)
  assert.deepEqual(
    [...placed.values()].map((pod) => pod.spec.nodeName),
    ['b', 'b'],
  )
})

test('SCH-17 gates hold a pod back without a word of failure; removing them lets it go', async () => {
  await addNode(own.api.client, newNode('a'))
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('gated', '100m', { schedulingGates: [{ name: 'example.com/wait' }] }))
  await create(newPod('free'))
  await until('free', isBound)
  const gated = await own.api.client.of(pods).get({ namespace: 'default', name: 'gated' })
  const { status, reason } = scheduled(gated) ?? {}
  assert.deepEqual([gated.spec.nodeName ?? '', status, reason], ['', 'False', 'SchedulingGated'])
  await own.api.client.of(pods).patch({ namespace: 'default', name: 'gated' }, 'merge', { spec: { schedulingGates: null } })
  await until('gated', isBound)
})

test('SCH-17 of pods that wait together the one of higher priority gets the room', async () => {
  await create(newPod('low', '900m', { priority: 1 }))
  await create(newPod('high', '900m', { priority: 100 }))
  await addNode(own.api.client, newNode('a', { cpu: '1', memory: '1Gi', pods: '10' }))
  own.scheduler = startScheduler(own.api.client)
  await until('high', isBound)
  assert.equal((await until('low', isUnschedulable)).spec.nodeName ?? '', '')
})

test('pods of another scheduler are left alone', async () => {
  await addNode(own.api.client, newNode('a'))
  own.scheduler = startScheduler(own.api.client)
  await create(newPod('theirs', '100m', { schedulerName: 'other-scheduler' }))
  await create(newPod('ours'))
  await until('ours', isBound)
  const theirs = await own.api.client.of(pods).get({ namespace: 'default', name: 'theirs' })
  assert.deepEqual([theirs.spec.nodeName ?? '', scheduled(theirs)], ['', undefined])
})

test('SCH-19 a pod that another scheduler binds meanwhile keeps its node and counts there', async () => {
  await addNode(own.api.client, newNode('a', { cpu: '1', memory: '1Gi', pods: '10' }))
  await addNode(own.api.client, newNode('b', { cpu: '1', memory: '1Gi', pods: '10' }))
  own.scheduler = startScheduler(own.api.client)
  const names = Array.from({ length: 10 }, (_, i) => `web-${i}`)
  // Both bind at once: the later one gets a conflict.
  await Promise.all(
    names.map(async (name) => {
      await create(newPod(name, '50m'))
      try {
        await own.api.client.of(pods).createSubresource({ namespace: 'default', name }, 'binding', { metadata: { name }, target: { kind: 'Node', name: 'b' } })
      } catch (error) {
        assert.ok(isStatus(error, 'Conflict'), String(error))
      }
    }),
  )
  const placed = await untilPods(own.api.client, names, isBound)
  for (const pod of placed.values()) assert.equal(scheduled(pod)?.status, 'True')
  // The free resources are computed exactly: pods for a full node fit, and no more.
  const onB = [...placed.values()].filter((pod) => pod.spec.nodeName === 'b').length
  await create(newPod('rest', `${1000 - 50 * onB}m`, { affinity: onlyOn('b') }))
  await until('rest', isBound)
  await create(newPod('over', '10m', { affinity: onlyOn('b') }))
  assert.match(scheduled(await until('over', isUnschedulable))?.message ?? '', /1 Insufficient cpu/)
})

function onlyOn(name: string) {
  const nodeSelectorTerms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }]
  return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } }
}

test('ARC-04 a scheduler that stops in the middle of 300 pods is followed by one that binds each exactly once, within the room there is', async () => {
  for (const name of ['a', 'b', 'c']) await addNode(own.api.client, newNode(name, { cpu: '10', memory: '64Gi', pods: '110' }))
  const bindings = countBindings(own.api)
  const names = Array.from({ length: 300 }, (_, i) => `web-${i}`)
  for (const name of names) await create(newPod(name, '100m'))
  own.scheduler = startScheduler(own.api.client)
  await untilPods(own.api.client, ['web-60'], isBound)
  await own.scheduler.stop()
  const before = (await own.api.client.of(pods).list({ namespace: 'default' })).items.filter(isBound)
  assert.ok(before.length < 300, `all ${before.length} were bound before the stop`)
  own.scheduler = startScheduler(own.api.client)
  const placed = await untilPods(own.api.client, names, isBound)
  const on = (node: string) => [...placed.values()].filter((pod) => pod.spec.nodeName === node).length
  assert.deepEqual(['a', 'b', 'c'].map(on), [100, 100, 100])
  for (const pod of before) assert.equal(placed.get(pod.metadata.name ?? '')?.spec.nodeName, pod.spec.nodeName)
  assert.deepEqual(await bindings(), new Map(names.map((name) => [name, 1])))
})

/** How often each pod got a node, by the watch from now on. */
function countBindings({ client }: TestApiServer) {
  const stop = new AbortController()
  const counts = new Map<string, number>()
  const bound = new Set<string>()
  const seen = (async () => {
    for await (const batch of client.of(pods).watch({ namespace: 'default', signal: stop.signal })) {
      for (const { object } of batch) {
        const { name = '' } = object.metadata
        const key = `${name}@${object.spec.nodeName}`
        if (!object.spec.nodeName || bound.has(key)) continue
        bound.add(key)
        counts.set(name, (counts.get(name) ?? 0) + 1)
      }
      if (bound.size >= 300) return
    }
  })()
  return async () => {
    await seen
    stop.abort(new Error('counted'))
    return new Map([...counts].sort(([a], [b]) => Number(a.slice(4)) - Number(b.slice(4))))
  }
}
