import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { containerResources, podCgroupLimits, sandboxResources } from './cgroupResources.ts'
import { memoryQos } from './memoryQos.ts'

const options = { throttlingFactor: 0.9, reservationPolicy: 'None', allocatableBytes: 100 * 4096 }
const cases = [
  { name: 'between request and limit', qos: 'Burstable', request: 4096, limit: 11 * 4096, want: { 'memory.high': String(10 * 4096) } },
  { name: 'nothing of containers that ask for nothing', qos: 'BestEffort', request: 0, limit: 0, want: {} },
  { name: 'without a limit', qos: 'Burstable', request: 10 * 4096, limit: 0, want: { 'memory.high': String(91 * 4096) } },
  { name: 'never for Guaranteed containers', qos: 'Guaranteed', request: 4096, limit: 4096, want: {} },
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
