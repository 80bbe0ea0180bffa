import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { containerResources, podCgroupLimits, sandboxResources } from './cgroupResources.ts'
import { memoryQos } from './memoryQos.ts'
import type { SwapOptions } from './swap.ts'

const options = { throttlingFactor: 0.9, reservationPolicy: 'None', allocatableBytes: 100 * 4096 }
/** The files of protection are reset, as they may have been written under another policy. */
const nothing = { 'memory.min': '0', 'memory.low': '0' }
const cases = [
  { name: 'between request and limit', qos: 'Burstable', request: 4096, limit: 11 * 4096, want: { ...nothing, 'memory.high': String(10 * 4096) } },
  { name: 'nothing of containers that ask for nothing', qos: 'BestEffort', request: 0, limit: 0, want: nothing },
  { name: 'without a limit', qos: 'Burstable', request: 10 * 4096, limit: 0, want: { ...nothing, 'memory.high': String(91 * 4096) } },
  { name: 'never for Guaranteed containers', qos: 'Guaranteed', request: 4096, limit: 4096, want: nothing },
  { name: 'protected', qos: 'Guaranteed', request: 4096, limit: 4096, policy: 'TieredReservation', want: { 'memory.min': '4096' } },
  {
    name: 'protected and slowed down',
    qos: 'Burstable',
    request: 4096,
    limit: 11 * 4096,
    policy: 'TieredReservation',
    want: { 'memory.low': '4096', 'memory.high': String(10 * 4096) },
  },
]
for (const c of cases) {
  test(`KUB-14 memory of cgroup v2: ${c.name}`, () => {
    assert.deepEqual(memoryQos(c.qos, c.request, c.limit, { ...options, reservationPolicy: c.policy ?? 'None' }), c.want)
  })
}

const mebi = 2 ** 20
const pages = { requests: { cpu: '1', memory: '64Mi', 'hugepages-2Mi': '8Mi' }, limits: { cpu: '1', memory: '64Mi', 'hugepages-2Mi': '8Mi' } }
const pod = (resources: object, more: object = {}): Pod =>
  ({ metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources }], ...more }, status: { qosClass: 'Guaranteed' } }) as unknown as Pod

test('KUB-14 RES-01 huge pages are limited to the requests, and other sizes to 0', () => {
  const sizes = [2 * mebi, 1024 * mebi]
  const limits = podCgroupLimits(pod(pages), { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, podPidsLimit: -1, hugepageSizes: sizes })
  assert.deepEqual(limits.hugepageLimits, { '2MB': 8 * mebi, '1GB': 0 })
  const container = (resources: object) =>
    containerResources(pod(resources), pod(resources).spec.containers[0]!, {
      cpuCFSQuota: true,
      cpuCFSQuotaPeriodMs: 100,
      memoryCapacityBytes: 2 ** 30,
      hugepageSizes: sizes,
    }).hugepageLimits
  assert.deepEqual(container(pages), [
    { pageSize: '2MB', limit: 8 * mebi },
    { pageSize: '1GB', limit: 0 },
  ])
  assert.equal(container({}), undefined)
})

test('CRI-06 a sandbox request has the pod’s resources without the overhead, and the overhead', () => {
  const overhead = { cpu: '250m', memory: '120Mi' }
  assert.deepEqual(sandboxResources(pod(pages, { overhead }), { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100 }), {
    resources: { cpuShares: 1024, cpuPeriod: 100_000, cpuQuota: 100_000, memoryLimitInBytes: 64 * mebi },
    overhead: { cpuShares: 256, cpuPeriod: 100_000, cpuQuota: 25_000, memoryLimitInBytes: 120 * mebi },
  })
  assert.equal(podCgroupLimits(pod(pages, { overhead }), { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, podPidsLimit: -1 }).memoryLimitBytes, 184 * mebi)
})

const twoGibi = 2 * 2 ** 30
const swapOf = (cgroupVersion: 1 | 2, swapBehavior: string): SwapOptions => ({ cgroupVersion, swapBehavior, memoryBytes: twoGibi, swapBytes: 2 ** 30 })
const half = { requests: { memory: '1Gi' } }
for (const { says, swap, qosClass = 'Burstable', resources = half, priority, want } of [
  { says: 'none on cgroup v2 by default', swap: swapOf(2, ''), want: { unified: { 'memory.swap.max': '0' } } },
  { says: 'the share of the requested memory by LimitedSwap', swap: swapOf(2, 'LimitedSwap'), want: { unified: { 'memory.swap.max': String(2 ** 29) } } },
  { says: 'none to Guaranteed pods', swap: swapOf(2, 'LimitedSwap'), qosClass: 'Guaranteed', want: { unified: { 'memory.swap.max': '0' } } },
  { says: 'none to critical pods', swap: swapOf(2, 'LimitedSwap'), priority: 2_000_000_000, want: { unified: { 'memory.swap.max': '0' } } },
  {
    says: 'none to containers whose memory request equals the limit',
    swap: swapOf(2, 'LimitedSwap'),
    resources: { ...half, limits: { memory: '1Gi' } },
    want: { unified: { 'memory.swap.max': '0' } },
  },
  { says: 'none to containers that request no memory', swap: swapOf(2, 'LimitedSwap'), resources: {}, want: { unified: { 'memory.swap.max': '0' } } },
  {
    says: 'none to containers that request more than the node has',
    swap: swapOf(2, 'LimitedSwap'),
    resources: { requests: { memory: '3Gi' } },
    want: { unified: { 'memory.swap.max': '0' } },
  },
  {
    says: 'none beyond the memory limit on cgroup v1',
    swap: swapOf(1, 'LimitedSwap'),
    resources: { limits: { memory: '1Gi' } },
    want: { memorySwapLimitInBytes: 2 ** 30 },
  },
  { says: 'any amount on cgroup v1 without a memory limit', swap: swapOf(1, ''), want: {} },
  { says: 'any amount where the kernel cannot limit it', swap: undefined, want: {} },
]) {
  test(`KUB-14 a container may swap ${says}`, () => {
    const owner = { ...pod(resources, priority === undefined ? {} : { priority }), status: { qosClass } } as Pod
    const { unified, memorySwapLimitInBytes } = containerResources(owner, owner.spec.containers[0]!, {
      ...{ cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, memoryCapacityBytes: twoGibi },
      swap,
    })
    assert.deepEqual({ ...(unified ? { unified } : {}), ...(memorySwapLimitInBytes ? { memorySwapLimitInBytes } : {}) }, want)
  })
}

test('KUB-14 on cgroup v2 the runtime gets all limits of the kernel in one list, also that a whole container ends out of memory', () => {
  const owner = pod({ requests: { memory: '1Mi' }, limits: { memory: '1Mi' } })
  const resources = containerResources(owner, owner.spec.containers[0]!, {
    ...{ cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, memoryCapacityBytes: twoGibi },
    endsWholeContainer: true,
    swap: swapOf(2, ''),
    memoryQos: { ...options, reservationPolicy: 'TieredReservation' },
  })
  assert.deepEqual(resources.unified, { 'memory.oom.group': '1', 'memory.swap.max': '0', 'memory.min': String(2 ** 20) })
})

test('KUB-14 MemoryQoS protects a pod’s group in the sum of its requests: Guaranteed pods always, Burstable pods as far as possible', () => {
  const of = (qosClass: string, reservationPolicy: string) =>
    podCgroupLimits({ ...pod(half), status: { qosClass } } as Pod, {
      ...{ cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, podPidsLimit: -1 },
      memoryQos: { ...options, reservationPolicy },
    })
  const protection = (...from: [string, string]) => [of(...from).memoryMinBytes, of(...from).memoryLowBytes]
  assert.deepEqual(protection('Guaranteed', 'TieredReservation'), [2 ** 30, undefined])
  assert.deepEqual(protection('Burstable', 'TieredReservation'), [undefined, 2 ** 30])
  assert.deepEqual(protection('Burstable', 'None'), [undefined, undefined])
})
