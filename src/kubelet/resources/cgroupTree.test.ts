import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { checkResourcesConfig, declaredFeatures, resourcesDefaults } from '../core/resourceConfig.ts'
import { checkCgroupVersion, kubepodsLimits, qosLimits, reservedLimits } from './cgroupTree.ts'

const gibi = 2 ** 30
const machine = { cpus: 4, memoryBytes: 8 * gibi }
const reserved = { systemReserved: { cpu: '500m', memory: '1Gi', pid: '1000' }, kubeReserved: { cpu: '500m', memory: '1Gi' } }

test('KUB-14 kubepods gets what is left to pods, everything when that is not enforced', () => {
  assert.deepEqual(kubepodsLimits(machine, { ...resourcesDefaults, ...reserved }), { cpuShares: 3072, memoryLimitBytes: 6 * gibi, pidsLimit: 4_193_304 })
  assert.deepEqual(kubepodsLimits(machine, { ...resourcesDefaults, ...reserved, enforceNodeAllocatable: [] }), { cpuShares: 4096, memoryLimitBytes: 8 * gibi })
})

test('KUB-14 what is reserved is limited whole, or in CPU alone', () => {
  assert.deepEqual(reservedLimits(reserved.systemReserved, false), { cpuShares: 512, memoryLimitBytes: gibi, pidsLimit: 1000 })
  assert.deepEqual(reservedLimits(reserved.systemReserved, true), { cpuShares: 512 })
})

function pod(qosClass: string, cpu: string, memory: string, phase = 'Running'): Pod {
  const requests = qosClass === 'BestEffort' ? {} : { cpu, memory }
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: { requests } }] }, status: { phase, qosClass } } as unknown as Pod
}

test('KUB-14 RES-02 burstable pods share CPU by what they ask for together; finished ones do not count', () => {
  const pods = [
    pod('Burstable', '500m', '1Gi'),
    pod('Burstable', '1', '1Gi'),
    pod('Burstable', '4', '1Gi', 'Succeeded'),
    pod('Guaranteed', '1', '2Gi'),
    pod('BestEffort', '', ''),
  ]
  assert.deepEqual(qosLimits(pods, { memory: '8Gi' }, resourcesDefaults), { burstable: { cpuShares: 1536 }, bestEffort: { cpuShares: 2 } })
  const config = { qosReserved: { memory: '50%' }, featureGates: { QOSReserved: true } }
  assert.deepEqual(qosLimits(pods, { memory: '8Gi' }, config), {
    burstable: { cpuShares: 1536, memoryLimitBytes: 7 * gibi },
    bestEffort: { cpuShares: 2, memoryLimitBytes: 6 * gibi },
  })
})

test('KUB-14 a part of the requested memory that is no whole number of bytes is rounded down before it is kept back', () => {
  const config = { qosReserved: { memory: '50%' }, featureGates: { QOSReserved: true } }
  const limits = qosLimits([pod('Guaranteed', '1', '3'), pod('Burstable', '1', '5')], { memory: '100' }, config)
  assert.deepEqual([limits.burstable.memoryLimitBytes, limits.bestEffort.memoryLimitBytes], [99, 97])
})

test('KUB-14 MemoryQoS protects the memory of classes by the policy TieredReservation, and lifts the protection by None', () => {
  const pods = [pod('Guaranteed', '1', '2Gi'), pod('Burstable', '1', '1Gi'), pod('BestEffort', '', '')]
  const protection = (reservationPolicy: string) => {
    const limits = qosLimits(pods, { memory: '8Gi' }, resourcesDefaults, { throttlingFactor: 0.9, reservationPolicy, allocatableBytes: 8 * gibi })
    return [limits.guaranteed, limits.burstable.memoryLowBytes, limits.bestEffort.memoryLowBytes]
  }
  assert.deepEqual(protection('TieredReservation'), [{ memoryMinBytes: 3 * gibi }, gibi, undefined])
  assert.deepEqual(protection('None'), [{ memoryMinBytes: 0 }, 0, undefined])
  assert.deepEqual(reservedLimits(reserved.systemReserved, false, true), { cpuShares: 512, memoryLimitBytes: gibi, memoryMinBytes: gibi, pidsLimit: 1000 })
})

test('KUB-14 cgroup v1 is reported as an event, or refused', () => {
  const warnings: string[] = []
  const check = (version: 1 | 2, failCgroupV1: boolean, singleProcessOOMKill?: boolean) =>
    checkCgroupVersion(version, { failCgroupV1, singleProcessOOMKill }, (message) => warnings.push(message))
  check(2, true)
  assert.deepEqual(warnings, [])
  check(1, false)
  assert.deepEqual(warnings, ['cgroup v1 support is in maintenance mode, please migrate to cgroup v2'])
  check(2, true, false)
  assert.throws(() => check(1, false, false), /singleProcessOOMKill must not be explicitly set to false when using cgroup v1/)
  assert.throws(() => check(1, true), /kubelet is configured to not run on a host using cgroup v1/)
})

const bad = [
  {
    name: 'an unknown enforcement',
    config: { enforceNodeAllocatable: ['everything'] },
    error: /option "everything" specified for enforceNodeAllocatable .* Valid options are "pods", .* or "none"/,
  },
  { name: 'none with others', config: { enforceNodeAllocatable: ['none', 'pods'] }, error: /may not contain additional enforcements when "none" is specified/ },
  {
    name: 'no cgroup for what is reserved',
    config: { enforceNodeAllocatable: ['system-reserved'] },
    error: /systemReservedCgroup \(--system-reserved-cgroup\) must be specified/,
  },
  {
    name: 'both kinds of one enforcement',
    config: { enforceNodeAllocatable: ['kube-reserved', 'kube-reserved-compressible'], kubeReservedCgroup: '/kube' },
    error: /both "kube-reserved" and "kube-reserved-compressible" cannot be specified together/,
  },
  { name: 'the systemd driver', config: { cgroupDriver: 'systemd' }, error: /cgroupDriver "systemd" is not supported: only "cgroupfs" is/ },
]
for (const c of bad) {
  test(`KUB-14 settings that cannot be are refused: ${c.name}`, () => assert.throws(() => checkResourcesConfig({ ...resourcesDefaults, ...c.config }), c.error))
}

test('KUB-22 the node declares the features of its gates', () => {
  const all = ['ExtendWebSocketsToKubelet', 'InPlacePodLevelResourcesVerticalScaling', 'InPlacePodVerticalScalingInitContainers']
  assert.deepEqual(declaredFeatures({ featureGates: {} }), all)
  for (const gate of all) {
    assert.deepEqual(
      declaredFeatures({ featureGates: { [gate]: false } }),
      all.filter((one) => one !== gate),
    )
  }
  assert.deepEqual(declaredFeatures({ featureGates: { NodeDeclaredFeatures: false } }), [])
})
