import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createPodMetrics } from './podMetrics.ts'
import { createPodTable } from './podTable.ts'
import { createPodWorkers } from './podWorkers.ts'
import { type PodMachinery, RuntimeStatusError } from './syncPod.ts'

const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [{ name: 'c' }] }, status: {} }

for (const { says, failure, events } of [
  { says: 'without an event', failure: new Error('disk is away'), events: [] },
  {
    says: 'with the event FailedSync when the runtime cannot be read',
    failure: new RuntimeStatusError(new Error('runtime is away')),
    events: ['FailedSync: error determining status: runtime is away', 'FailedSync: error determining status: runtime is away'],
  },
])
  test(`KUB-04 a failed sync is repeated after 10 to 15 seconds, ${says}`, async () => {
    const clock = new VirtualClock()
    const stop = new AbortController()
    const syncedMs: number[] = []
    const recorded: string[] = []
    const recorder = { event: (_: unknown, __: string, reason: string, message: string) => void recorded.push(`${reason}: ${message}`) }
    const machinery = {
      context: { config: { nodeName: 'node' }, clock, random: seededRandom(1), log: noLog, recorder, objects: { registerPod() {} } },
      metrics: createPodMetrics(noMetrics, clock),
      admit: () => {
        syncedMs.push(clock.monotonicMs())
        return Promise.reject(failure)
      },
    } as unknown as PodMachinery
    const workers = createPodWorkers(machinery, createPodTable(stop.signal), stop.signal)
    const startedMs = clock.monotonicMs()
    workers.update(pod)
    await clock.advance(15_000)
    stop.abort()
    await workers.settled()
    const [first = 0, second = 0, ...more] = syncedMs.map((ms) => ms - startedMs)
    assert.equal(first, 0)
    assert.ok(second >= 10_000 && second <= 15_000, `${second}`)
    assert.deepEqual([more, recorded], [[], events])
  })
