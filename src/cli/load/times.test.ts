import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Deployment } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { DeploymentTimes } from './deploymentTimes.ts'
import { createPace } from './pace.ts'
import { PodTimes } from './podTimes.ts'
import { Failures, Samples } from './samples.ts'

const pod = (name: string, { node, ready = false }: { node?: string; ready?: boolean } = {}): Frozen<Pod> =>
  ({
    metadata: { namespace: 'a', name, uid: name },
    spec: { nodeName: node, containers: [] },
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  }) as unknown as Frozen<Pod>

const rows = (samples: Samples) => samples.percentiles().map(({ what, count, p50, max }) => [what, count, p50, max])

test('ARC-13 a pod is measured from its first event until it has a node and is ready, once', async () => {
  const clock = new VirtualClock()
  const times = new PodTimes(clock)
  const samples = new Samples()
  times.begin(samples)
  times.apply([{ type: 'ADDED', object: pod('p') }])
  assert.deepEqual([times.count, times.unbound, times.ready], [1, 1, 0])
  await clock.advance(30)
  times.apply([{ type: 'MODIFIED', object: pod('p', { node: 'n' }) }])
  await clock.advance(70)
  for (const ready of [true, false, true]) times.apply([{ type: 'MODIFIED', object: pod('p', { node: 'n', ready }) }])
  assert.deepEqual([times.count, times.unbound, times.ready], [1, 0, 1])
  assert.deepEqual(rows(samples), [
    ['pod created to scheduled', 1, 30, 30],
    ['pod scheduled to ready', 1, 70, 70],
    ['pod created to ready', 1, 100, 100],
  ])
})

test('ARC-13 pods that a new list does not have are forgotten, and any pod is one that is left', () => {
  const times = new PodTimes(new VirtualClock())
  times.replace(['p', 'q', 'r'].map((name) => pod(name, { node: 'n', ready: true })))
  times.replace([pod('q', { node: 'n', ready: true }), pod('s')])
  assert.deepEqual([times.count, times.unbound, times.ready], [2, 1, 1])
  times.apply([{ type: 'DELETED', object: pod('q') }])
  assert.equal(times.any(seededRandom(1))?.name, 's')
  times.apply([{ type: 'DELETED', object: pod('s') }])
  assert.equal(times.any(seededRandom(1)), undefined)
})

const deployment = (generation: number, ready: number, replicas = 3): Frozen<Deployment> =>
  ({
    metadata: { namespace: 'a', name: 'web', generation },
    spec: { replicas },
    status: { observedGeneration: generation, replicas: ready, updatedReplicas: ready, readyReplicas: ready },
  }) as unknown as Frozen<Deployment>

test('ARC-13 a change of a Deployment ends when all replicas of its generation are ready, also when the watch was faster than the answer', async () => {
  const clock = new VirtualClock()
  const times = new DeploymentTimes(clock)
  const samples = new Samples()
  times.apply([{ type: 'ADDED', object: deployment(1, 3) }])
  times.begin('scale', deployment(2, 3), clock.monotonicMs(), samples)
  assert.equal(times.pending, 1, 'the older generation does not count')
  await clock.advance(40)
  times.apply([{ type: 'MODIFIED', object: deployment(2, 2) }])
  times.apply([{ type: 'MODIFIED', object: deployment(2, 3) }])
  assert.equal(times.pending, 0)
  times.apply([{ type: 'MODIFIED', object: deployment(3, 3) }])
  times.begin('rollout', deployment(3, 3), clock.monotonicMs() - 5, samples)
  assert.deepEqual(rows(samples), [
    ['scale to all ready', 1, 40, 40],
    ['rollout to all ready', 1, 5, 5],
  ])
})

test('ARC-13 a change that the next one overtakes is counted, and not measured', () => {
  const times = new DeploymentTimes(new VirtualClock())
  const samples = new Samples()
  times.begin('scale', deployment(2, 0), 0, samples)
  times.begin('scale', deployment(3, 0), 0, samples)
  assert.deepEqual([times.pending, times.overtaken], [1, 1])
  times.apply([{ type: 'MODIFIED', object: deployment(3, 3) }])
  assert.deepEqual([times.pending, samples.percentiles()[0]?.count], [0, 1])
})

test('ARC-13 operations begin at their rate, those under way are bounded, and late ones are counted', async () => {
  const clock = new VirtualClock()
  const pace = createPace(clock, 2, 1, new AbortController().signal)
  const begun: number[] = []
  const all = (async () => {
    for (let i = 0; i < 4; i++) {
      await pace.next(async () => {
        begun.push(clock.monotonicMs())
        if (i === 1) await clock.sleep(3_000)
      })
    }
    await pace.done()
  })()
  const first = clock.monotonicMs()
  for (let i = 0; i < 100; i++) await clock.advance(100)
  await all
  assert.deepEqual(
    begun.map((ms) => ms - first),
    [0, 500, 3_500, 3_500],
  )
  assert.equal(pace.late, 2)
})

test('ARC-13 percentiles are of the nearest rank, and many different failures are counted together', () => {
  const samples = new Samples()
  for (let i = 1; i <= 200; i++) samples.add('a', i)
  assert.deepEqual(samples.percentiles(), [{ what: 'a', count: 200, p50: 100, p90: 180, p99: 198, max: 200 }])
  const failures = new Failures()
  for (let i = 0; i < 150; i++) failures.add('create', `no ${i}`)
  assert.equal(failures.list().length, 101)
  assert.equal(failures.list().at(-1)?.count, 50)
})
