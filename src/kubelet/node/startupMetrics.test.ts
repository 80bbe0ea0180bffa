import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { createStartupMetrics } from './startupMetrics.ts'

async function start(uptimeMs: number | undefined, isNew: boolean) {
  const metrics = createRecordedMetrics()
  const clock = new VirtualClock()
  const startup = createStartupMetrics({ metrics, clock }, uptimeMs)
  await clock.advance(1000)
  startup.registering()
  await clock.advance(2000)
  // The second try.
  startup.registering()
  if (isNew) startup.registeredNew()
  await clock.advance(4000)
  startup.ready()
  await clock.advance(8000)
  startup.ready()
  return Object.fromEntries([...metrics.values].map(([name, value]) => [name.slice('kubelet_node_startup_'.length), value]))
}

test('OBS-10 the stages of a new node’s start are reported once it is ready; existing and simulated nodes report none', async () => {
  assert.deepEqual(await start(60_000, true), {
    pre_kubelet_duration_seconds: 60,
    pre_registration_duration_seconds: 1,
    registration_duration_seconds: 2,
    post_registration_duration_seconds: 4,
    duration_seconds: 67,
  })
  assert.deepEqual([await start(60_000, false), await start(undefined, true)], [{}, {}])
})
