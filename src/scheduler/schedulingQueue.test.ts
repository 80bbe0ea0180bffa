import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod, PodSpec } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { defaultPlugins } from './plugins/index.ts'
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
  const queue = new SchedulingQueue({ clock, plugins: defaultPlugins.map(({ plugin }) => plugin), initialBackoffMs: 1000, maxBackoffMs: 10_000 })
  return { clock, queue }
}

test('SCH-17 higher priority first, then who waited longer', async () => {
  const { clock, queue } = create()
  for (const [name, priority] of [
    ['low', 0],
    ['high', 10],
    ['low2', 0],
  ] as const) {
    queue.set(pod(name, { priority }))
    await clock.advance(1)
  }
  assert.deepEqual([queue.tryPop()?.key, queue.tryPop()?.key, queue.tryPop()?.key, queue.tryPop()], ['d/high', 'd/low', 'd/low2', undefined])
})

test('SCH-17 a gated pod waits until its gates are gone', () => {
  const { queue } = create()
  queue.set(pod('p', { schedulingGates: [{ name: 'wait' }] }))
  assert.equal(queue.tryPop(), undefined)
  assert.equal(queue.counts().gated, 1)
  queue.set(pod('p', {}, 2))
  assert.equal(queue.tryPop()?.key, 'd/p')
})

test('SCH-17 only an event that may help brings a refused pod back, after its back-off', async () => {
  const { clock, queue } = create()
  queue.set(pod('p'))
  const tried = queue.tryPop()
  assert.ok(tried)
  queue.failed(tried, new Set(['NodeResourcesFit']))
  queue.onEvent({ type: 'NodeAdd', node: node('500m') })
  await clock.advance(5000)
  assert.equal(queue.tryPop(), undefined, 'a node that is too small does not help')
  queue.onEvent({ type: 'NodeAdd', node: node('2') })
  assert.equal(queue.tryPop()?.key, 'd/p')
})

test('SCH-17 an event during the try is not lost, and back-off doubles', async () => {
  const { clock, queue } = create()
  queue.set(pod('p'))
  const want = [1000, 2000, 4000, 8000, 10_000]
  for (const backoffMs of want) {
    const tried = queue.tryPop()
    assert.ok(tried)
    queue.onEvent({ type: 'NodeAdd', node: node('2') })
    queue.failed(tried, new Set(['NodeResourcesFit']))
    await clock.advance(backoffMs - 1)
    assert.equal(queue.tryPop(), undefined)
    await clock.advance(1)
  }
  assert.equal(queue.tryPop()?.attempts, want.length + 1)
})

test('SCH-19 an error is retried by time alone; five minutes bring everybody back', async () => {
  const { clock, queue } = create()
  queue.set(pod('p'))
  const tried = queue.tryPop()
  assert.ok(tried)
  queue.failed(tried, new Set())
  await clock.advance(1000)
  const again = queue.tryPop()
  assert.ok(again)
  queue.failed(again, new Set(['NodeName']))
  await clock.advance(299_999)
  assert.equal(queue.tryPop(), undefined)
  await clock.advance(1)
  assert.equal(queue.tryPop()?.key, 'd/p')
})

test('a deleted pod never comes out; our own condition is no reason to try again', async () => {
  const { clock, queue } = create()
  queue.set(pod('gone'))
  queue.delete('d/gone')
  assert.equal(queue.tryPop(), undefined)
  queue.set(pod('p'))
  const tried = queue.tryPop()
  assert.ok(tried)
  queue.failed(tried, new Set(['NodeResourcesFit']))
  queue.set({ ...pod('p'), status: { conditions: [{ type: 'PodScheduled', status: 'False' }] } })
  await clock.advance(10_000)
  assert.equal(queue.tryPop(), undefined)
  assert.deepEqual(queue.counts(), { active: 0, backoff: 0, unschedulable: 1, gated: 0, inFlight: 0 })
})

test('pop waits for a pod and gives up when told', async () => {
  const { queue } = create()
  const stop = new AbortController()
  const waiting = queue.pop(stop.signal)
  queue.set(pod('p'))
  assert.equal((await waiting)?.key, 'd/p')
  const nothing = queue.pop(stop.signal)
  stop.abort()
  assert.equal(await nothing, undefined)
})
