import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import type { KubeletContext } from '../core/context.ts'
import { labelKeys } from '../core/runtimeLabels.ts'
import { createPodEvents } from './podEvents.ts'

test('KUB-10 before the first relist any pod may have containers; afterwards only pods that the runtime listed, or whose step created some', async () => {
  const clock = new VirtualClock()
  let isUp = false
  const items = [{ id: 's1', state: 'SANDBOX_READY', labels: { [labelKeys.podUid]: 'old' } }]
  const list = async (listed: object[]) => {
    if (!isUp) throw new Error('not yet')
    return listed
  }
  const runtime = { eventsAreComplete: false, listPodSandbox: () => list(items), listContainers: () => list([]), events: () => clock.sleep(1e9) }
  const context = { runtime, clock, log: noLog, metrics: noMetrics, config: { relistPeriodMs: 1000 } } as unknown as KubeletContext
  const events = createPodEvents(context)
  const stop = new AbortController()
  const running = events.run({ runtimeChanged: () => {}, podCounts: () => [] }, stop.signal)
  await clock.advance(500)
  assert.deepEqual([events.mayHold('old'), events.mayHold('new')], [true, true])
  isUp = true
  await clock.advance(1000)
  assert.deepEqual([events.mayHold('old'), events.mayHold('new')], [true, false])
  events.note({ uid: 'new', sandboxes: [{ id: 's2', state: 'SANDBOX_READY' }], containers: [] } as unknown as Parameters<typeof events.note>[0])
  assert.equal(events.mayHold('new'), true)
  stop.abort()
  await clock.advance(1)
  await running
})
