import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { Indexer } from '#client/cache/indexer'
import { podControllerIndexers } from './indexes.ts'
import { createPodPace } from './podPace.ts'

const pod = (name: string, nodeName?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'n', uid: name },
  spec: { containers: [], ...(nodeName ? { nodeName } : {}) },
  status: {},
})

function paceWith(unscheduled: number) {
  const clock = new VirtualClock()
  const pods = new Indexer<Pod>(podControllerIndexers)
  for (let i = 0; i < unscheduled; i++) pods.set(pod(`p${i}`))
  for (let i = 0; i < 2000; i++) pods.set(pod(`placed${i}`, 'node'))
  return { clock, pace: createPodPace(clock, pods) }
}

test('CTL-03 pods that have a node do not slow a controller down', () => {
  const { pace } = paceWith(0)
  for (let i = 0; i < 10; i++) assert.deepEqual(pace.take('n', 500), { count: 500, waitMs: undefined })
})

test('CTL-03 where a thousand pods wait for a node, a controller creates twenty a second', async () => {
  const { clock, pace } = paceWith(1500)
  assert.deepEqual(pace.take('n', 500), { count: 0, waitMs: 250 })
  assert.deepEqual(pace.take('other', 500), { count: 500, waitMs: undefined })
  let created = 0
  for (let i = 0; i < 40; i++) {
    await clock.advance(250)
    created += pace.take('n', 500).count
  }
  assert.equal(created, 200)
})

test('CTL-03 where ten thousand wait, a controller creates half as fast', async () => {
  const { clock, pace } = paceWith(10_000)
  pace.take('n', 500)
  let created = 0
  for (let i = 0; i < 40; i++) {
    await clock.advance(250)
    created += pace.take('n', 500).count
  }
  assert.equal(created, 100)
})
