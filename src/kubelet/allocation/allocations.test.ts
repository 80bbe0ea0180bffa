import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { createAllocations } from './allocations.ts'

function pod(name: string, cpu: string, generation: number, conditions?: Pod['status']['conditions']): Pod {
  const containers = [{ name: 'c', resources: { requests: { cpu } } }]
  const status = { qosClass: 'Guaranteed', ...(conditions ? { conditions } : {}) }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, uid: name, namespace: 'n', generation }, spec: { containers }, status }
}

const infeasible = 'kubelet_pod_infeasible_resizes_total{reason_detail="guaranteed_pod_cpu_manager_static_policy"}'

async function allocationsOf(pods: () => FrozenPod[], cpuPolicy = 'none') {
  const events: string[] = []
  const recorder = { event: (_about: unknown, _type: string, reason: string) => void events.push(reason), flush: async () => {} }
  const metrics = createRecordedMetrics()
  const context = { metrics, recorder, clock: new VirtualClock(), log: noLog, config: {} } as unknown as KubeletContext
  const woken: string[] = []
  const room = () => ({ allocatable: { cpu: '1', memory: '1Gi', pods: '10' }, cpuPolicy, memoryPolicy: 'None', podLevel: true })
  const allocations = await createAllocations({ context, pods, room, wake: (uids) => woken.push(...uids) })
  return { allocations, events, woken, infeasible: () => metrics.values.get(infeasible) }
}

test('KUB-22 what can never be done is looked at once for each thing that is asked for, whatever else changes', async () => {
  let current = [pod('a', '100m', 1), pod('b', '100m', 1)]
  const { allocations, events, infeasible } = await allocationsOf(() => current, 'static')
  for (const one of current) {
    allocations.setAside(one)
    await allocations.resize(one)
  }
  current = [pod('a', '200m', 2), pod('b', '100m', 1)]
  const [a] = current
  assert.ok(a)
  await allocations.resize(a)
  await allocations.resize(a)
  assert.equal(infeasible(), 1)
  await allocations.forget('b')
  assert.equal(infeasible(), 1)
  const again = pod('a', '300m', 3)
  current = [again]
  await allocations.resize(again)
  assert.equal(infeasible(), 2)
  assert.deepEqual(events, ['ResizeInfeasible', 'ResizeInfeasible'])
  assert.deepEqual(
    allocations.conditions('a').map(({ reason, observedGeneration }) => [reason, observedGeneration]),
    [['Infeasible', 3]],
  )
  const back = pod('a', '100m', 4)
  current = [back]
  await allocations.resize(back)
  assert.deepEqual(allocations.conditions('a'), [])
})

test('KUB-22 conditions of resizes that an earlier kubelet reported stay, and are not reported again', async () => {
  const message = "Node didn't have enough resource: cpu, requested: 900, used: 200, capacity: 1000"
  const waits = { type: 'PodResizePending', status: 'True', reason: 'Deferred', message, observedGeneration: 2, lastTransitionTime: '2026-01-01T00:00:00Z' }
  let current = [pod('a', '900m', 2, [waits]), pod('b', '200m', 1)]
  const { allocations, events } = await allocationsOf(() => current)
  for (const one of [pod('a', '100m', 1), pod('b', '200m', 1)]) allocations.setAside(one)
  for (const one of current) await allocations.resize(one)
  assert.deepEqual(events, [])
  assert.equal(allocations.conditions('a')[0]?.message, message)
  current = current.slice(0, 1)
  await allocations.forget('b')
  assert.deepEqual(events, ['ResizeStarted'])
  for (const one of current) allocations.finished(one)
  assert.deepEqual(events, ['ResizeStarted', 'ResizeCompleted'])
})
