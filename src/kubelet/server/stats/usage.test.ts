import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import type { KubeletView } from '../../core/kubeletView.ts'
import { createUsageSource } from './usage.ts'

const containerStatuses = [{ name: 'main', containerID: 'simulated://c1', image: 'i', imageID: 'i', ready: true, restartCount: 0 }]
const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [] }, status: { containerStatuses } }

test('KUB-17 a simulated node’s processor time has the time at which its containers were measured', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const measuredAtMs = clock.now() + 60
  const cpu = { timestamp: measuredAtMs * 1e6, usageCoreNanoSeconds: { value: 5e9 } }
  const listContainerStats = async () => [{ attributes: { id: 'c1' }, cpu, memory: { timestamp: 0, workingSetBytes: { value: 1 } } }]
  const view = {
    context: () => undefined,
    runtime: { listContainerStats },
    pods: () => [pod],
    podStatus: () => undefined,
    config: {},
  } as unknown as KubeletView
  const { node } = await createUsageSource(view, clock).now()
  assert.deepEqual([node.atMs, node.cpuNs], [measuredAtMs, 5e9])
})
