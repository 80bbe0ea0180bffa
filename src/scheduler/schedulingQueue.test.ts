import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod, PodSpec } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { schedulerFixture } from '#testing/schedulerFixture'
import { podUpdateAction } from './clusterChanges.ts'
import { actions } from './framework/clusterEvent.ts'
import { SchedulingQueue } from './schedulingQueue.ts'

function pod(name: string, spec: Partial<PodSpec> = {}, generation = 1): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'd', uid: name, generation },
    spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }], ...spec },
    status: {},
  }
}

const node = (cpu: string): Node => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: {}, status: { allocatable: { cpu, pods: '10' } } })

function create() {
  const clock = new VirtualClock()
  const profiles = new Map([['default-scheduler', schedulerFixture().profile]])
  const incoming: string[] = []
  const kept = new Map<string, number>()
  const onIncoming = (place: string, event: string) => incoming.push(`${place} ${event}`)
  const queue = new SchedulingQueue({
    clock,
    profiles,
    initialBackoffMs: 1000,
    maxBackoffMs: 10_000,
    onIncoming,
    onKept: (event, by) => kept.set(event, (kept.get(event) ?? 0) + by),
  })
  const nodeAdded = (cpu: string) => queue.onEvent({ resource: 'Node', action: actions.Add, old: undefined, object: node(cpu) })
  const update = (old: Pod, now: Pod) => queue.update(now, { resource: 'TargetPod', action: podUpdateAction(old, now), old, object: now })
  return { clock, queue, incoming, kept, nodeAdded, update }
}

const by = (...plugins: string[]) => ({ refusedBy: new Set(plugins), pendingOn: new Set<string>() })

test('SCH-17 higher priority first, then who waited longer', async () => {
  const { clock, queue } = create()
  for (const [name, priority] of [
    ['low', 0],
    ['high', 10],
    ['low2', 0],
  ] as const) {
    queue.add(pod(name, { priority }))
    await clock.advance(1)
  }
  assert.deepEqual([queue.tryPop()?.key, queue.tryPop()?.key, queue.tryPop()?.key, queue.tryPop()], ['d/high', 'd/low', 'd/low2', undefined])
})

test('SCH-17 a gated pod waits until its gates are gone', () => {
  const { queue, update } = create()
  const gated = pod('p', { schedulingGates: [{ name: 'wait' }] })
  queue.add(gated)
  assert.equal(queue.tryPop(), undefined)
  assert.equal(queue.counts().gated, 1)
  update(gated, pod('p', {}, 2))
  assert.equal(queue.tryPop()?.key, 'd/p')
})

test('SCH-17 only an event that may help brings a refused pod back, after its back-off', async () => {
  const { clock, queue, nodeAdded } = create()
  queue.add(pod('p'))
  const tried = queue.tryPop()
  assert.ok(tried)
  queue.failed(tried, by('NodeResourcesFit'))
  nodeAdded('500m')
  await clock.advance(5000)
  assert.equal(queue.tryPop(), undefined, 'a node that is too small does not help')
  nodeAdded('2')
  assert.equal(queue.tryPop()?.key, 'd/p')
})

test('SCH-17 an event during the try is not lost, and back-off doubles', async () => {
  const { clock, queue, nodeAdded } = create()
  queue.add(pod('p'))
  const want = [1000, 2000, 4000, 8000, 10_000]
  for (const backoffMs of want) {
    const tried = queue.tryPop()
    assert.ok(tried)
    nodeAdded('2')
    queue.failed(tried, by('NodeResourcesFit'))
    await clock.advance(backoffMs - 1)
    assert.deepEqual([queue.counts().backoff, queue.counts().active], [1, 0])
    await clock.advance(1)
    assert.deepEqual([queue.counts().backoff, queue.counts().active], [0, 1])
  }
  assert.equal(queue.tryPop()?.attempts, want.length + 1)
})

test('SCH-19 a pod that failed by an error is retried by time alone; every pod is retried after five minutes', async () => {
  const { clock, queue } = create()
  queue.add(pod('p'))
  const tried = queue.tryPop()
  assert.ok(tried)
  queue.failed(tried, by())
  await clock.advance(1000)
  const again = queue.tryPop()
  assert.ok(again)
  queue.failed(again, by('NodeName'))
  await clock.advance(299_999)
  assert.equal(queue.tryPop(), undefined)
  await clock.advance(1)
  assert.equal(queue.tryPop()?.key, 'd/p')
})

test('a deleted pod is not handed out; our own condition does not requeue a pod', async () => {
  const { clock, queue, update } = create()
  queue.add(pod('gone'))
  queue.delete('d/gone')
  assert.equal(queue.tryPop(), undefined)
  queue.add(pod('p'))
  const tried = queue.tryPop()
  assert.ok(tried)
  queue.failed(tried, by('NodeResourcesFit'))
  update(pod('p'), { ...pod('p'), status: { conditions: [{ type: 'PodScheduled', status: 'False' }] } })
  await clock.advance(10_000)
  assert.equal(queue.tryPop(), undefined)
  assert.deepEqual(queue.counts(), { active: 0, backoff: 0, unschedulable: 1, gated: 0, inFlight: 0 })
})

test('SCH-17 a refused pod in back-off is tried early when no other pod waits; one that failed by an error is not', async () => {
  const { queue, nodeAdded, incoming } = create()
  queue.add(pod('refused'))
  const refused = queue.tryPop()
  assert.ok(refused)
  queue.failed(refused, by('NodeResourcesFit'))
  nodeAdded('2')
  queue.add(pod('other'))
  assert.equal(queue.counts().backoff, 1)
  assert.deepEqual([queue.tryPop()?.key, queue.tryPop()?.key], ['d/other', 'd/refused'])
  queue.add(pod('failed'))
  const failed = queue.tryPop()
  assert.ok(failed)
  queue.failed(failed, by())
  assert.equal(queue.tryPop(), undefined)
  assert.deepEqual(incoming.slice(0, 3), ['active UnschedulablePodAdd', 'unschedulable ScheduleAttemptFailure', 'backoff NodeAdd'])
  queue.close()
})

test('SCH-17 a pod that only waits for what a plugin has begun is tried at once when that is done', () => {
  const { queue, nodeAdded } = create()
  queue.add(pod('p'))
  const tried = queue.tryPop()
  assert.ok(tried)
  queue.failed(tried, { refusedBy: new Set(), pendingOn: new Set(['NodeName']) })
  nodeAdded('1')
  assert.deepEqual([queue.counts().active, queue.counts().backoff], [1, 0])
  queue.close()
})

test('pop waits for a pod, and resolves without one when its signal aborts', async () => {
  const { queue } = create()
  const stop = new AbortController()
  const waiting = queue.pop(stop.signal)
  queue.add(pod('p'))
  assert.equal((await waiting)?.key, 'd/p')
  const nothing = queue.pop(stop.signal)
  stop.abort()
  assert.equal(await nothing, undefined)
})

test('OBS-08 events in flight and requeues by timeout are counted', async () => {
  const { clock, queue, kept, nodeAdded } = create()
  queue.add(pod('p'))
  nodeAdded('2')
  const tried = queue.tryPop()
  assert.ok(tried)
  nodeAdded('500m')
  assert.deepEqual(
    [...kept],
    [
      ['PodPopped', 1],
      ['NodeAdd', 1],
    ],
  )
  queue.failed(tried, by('NodeResourcesFit'))
  assert.deepEqual([kept.get('PodPopped'), kept.get('NodeAdd')], [0, 0])
  await clock.advance(300_000)
  assert.equal(queue.tryPop()?.wasFlushed, true)
  queue.failed(tried, by('NodeResourcesFit'))
  assert.equal(tried.wasFlushed, false)
})
