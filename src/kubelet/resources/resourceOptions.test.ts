import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeletContext } from '../core/context.ts'
import { containerResourceOptions, podCgroupOptions } from './resourceOptions.ts'

const contextOf = (cgroups: object | undefined, config: object = {}) =>
  ({
    config: { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, podPidsLimit: -1, swapBehavior: '', featureGates: {}, memoryThrottlingFactor: 0.9, ...config },
    machineInfo: { memoryBytes: 100, swapBytes: 50 },
    allocatable: { memory: '80' },
    host: cgroups && { cgroups },
  }) as unknown as KubeletContext
const v2 = { version: 2, hasSwapLimits: true }

for (const { says, cgroups, config, want } of [
  { says: 'a whole container ends on cgroup v2', cgroups: v2, want: true },
  { says: 'a single process ends when singleProcessOOMKill is set', cgroups: v2, config: { singleProcessOOMKill: true }, want: false },
  { says: 'a single process ends on cgroup v1', cgroups: { version: 1, hasSwapLimits: true }, want: false },
  { says: 'a single process ends without a host', cgroups: undefined, want: false },
])
  test(`KUB-14 out of memory: ${says}`, () => assert.equal(containerResourceOptions(contextOf(cgroups, config)).endsWholeContainer, want))

test('KUB-14 swap is limited where the kernel can, by the machine’s memory and swap', () => {
  const swapOf = (cgroups: object | undefined) => containerResourceOptions(contextOf(cgroups, { swapBehavior: 'LimitedSwap' })).swap
  assert.deepEqual(swapOf(v2), { cgroupVersion: 2, swapBehavior: 'LimitedSwap', memoryBytes: 100, swapBytes: 50 })
  assert.deepEqual([swapOf({ version: 2, hasSwapLimits: false }), swapOf(undefined)], [undefined, undefined])
})

test('KUB-14 memory is protected and throttled on cgroup v2 with feature gate MemoryQoS', () => {
  const config = { featureGates: { MemoryQoS: true }, memoryReservationPolicy: 'TieredReservation' }
  const want = { throttlingFactor: 0.9, reservationPolicy: 'TieredReservation', allocatableBytes: 80 }
  assert.deepEqual(containerResourceOptions(contextOf(v2, config)).memoryQos, want)
  assert.deepEqual(podCgroupOptions(contextOf(v2, config)).memoryQos, want)
  assert.equal(podCgroupOptions(contextOf({ version: 1, hasSwapLimits: true }, config)).memoryQos, undefined)
  assert.equal(podCgroupOptions(contextOf(v2)).memoryQos, undefined)
})
