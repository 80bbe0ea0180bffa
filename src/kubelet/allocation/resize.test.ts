import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod } from '#api/gen/types/core.v1'
import type { ContainerRecord, PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { largerOf } from '../pods/podResizer.ts'
import { memoryDecreaseError, planResize, refuseResize, resizeMessage, resizeOrder } from './resize.ts'
import { requestedResizes } from './resizeMetrics.ts'

const record = { id: 'id', name: 'c', state: 'running' } as ContainerRecord
const status: PodRuntimeStatus = { uid: 'u', sandboxes: [], containers: [record, { ...record, id: 'id2', name: 'd' }] }
const has = { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '100m', memory: '64Mi' } }
const room = { allocatable: { cpu: '1', memory: '1Gi', pods: '10' }, cpuPolicy: 'none', memoryPolicy: 'None', podLevel: true }

function pod(amounts: Record<string, string>, more: Partial<Pod['spec']> = {}, name = 'p', resizePolicy?: Container['resizePolicy']): Pod {
  const containers = [{ name: 'c', resources: { requests: amounts, limits: amounts }, resizePolicy }]
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, uid: name, generation: 2 }, spec: { containers, ...more }, status: {} }
}

const restartForMemory = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }]
const plans = [
  { name: 'the same in other words', pod: pod({ cpu: '0.1', memory: '65536Ki' }), want: [[], []] },
  { name: 'more cpu', pod: pod({ cpu: '200m', memory: '64Mi' }), want: [['c'], []] },
  { name: 'more memory, with a restart', pod: pod({ cpu: '100m', memory: '128Mi' }, {}, 'p', restartForMemory), want: [[], ['c']] },
  { name: 'more cpu, where only memory restarts', pod: pod({ cpu: '200m', memory: '64Mi' }, {}, 'p', restartForMemory), want: [['c'], []] },
]
for (const c of plans) {
  test(`KUB-22 resize: ${c.name}`, () => {
    const plan = planResize(c.pod, status, () => has)
    assert.deepEqual(
      [plan.update, plan.restart].map((list) => list.map(({ container }) => container.name)),
      c.want,
    )
  })
}

test('KUB-22 a container without a limit is resized with its pod', () => {
  const spec = { containers: [{ name: 'c', resources: { requests: has.requests } }], resources: { limits: { cpu: '2', memory: '64Mi' } } }
  const [first] = planResize(pod({}, spec), status, () => has).update
  assert.deepEqual(first?.resources, { requests: has.requests, limits: { cpu: '2', memory: '64Mi' } })
})

test('KUB-22 what shrinks is changed before what grows', () => {
  const of = (name: string, cpu: string) => ({ name, resources: { requests: { cpu, memory: '64Mi' }, limits: { cpu, memory: '64Mi' } } })
  const both = pod({}, { containers: [of('c', '200m'), of('d', '50m')] })
  assert.deepEqual(
    planResize(both, status, () => has).update.map(({ container }) => container.name),
    ['d', 'c'],
  )
})

const small = pod({ cpu: '100m', memory: '64Mi' })
const guaranteed = (amounts: Record<string, string>): Pod => ({ ...pod(amounts), status: { qosClass: 'Guaranteed' } })
const refusals = [
  { name: 'that fits', pod: pod({ cpu: '700m' }), want: undefined },
  {
    name: 'beyond the node, which the API server does not let through',
    pod: pod({ cpu: '2' }),
    want: { reason: 'Deferred', message: "Node didn't have enough resource: cpu, requested: 2000, used: 200, capacity: 1000" },
  },
  {
    name: 'beyond what is free',
    pod: pod({ cpu: '900m' }),
    want: { reason: 'Deferred', message: "Node didn't have enough resource: cpu, requested: 900, used: 200, capacity: 1000" },
  },
  {
    name: 'of exclusive CPUs',
    pod: guaranteed({ cpu: '200m', memory: '64Mi' }),
    room: { ...room, cpuPolicy: 'static' },
    want: {
      reason: 'Infeasible',
      message: 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
      detail: 'guaranteed_pod_cpu_manager_static_policy',
    },
  },
  {
    name: 'of pinned memory',
    pod: guaranteed({ cpu: '100m', memory: '65Mi' }),
    room: { ...room, memoryPolicy: 'Static' },
    want: {
      reason: 'Infeasible',
      message: 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
      detail: 'guaranteed_pod_memory_manager_static_policy',
    },
  },
  {
    name: 'of pod-level resources while their feature gate is off',
    pod: pod({ cpu: '100m' }, { resources: { requests: { cpu: '1' } } }),
    room: { ...room, podLevel: false },
    want: { reason: 'Infeasible', message: 'InPlacePodLevelResourcesVerticalScaling is disabled', detail: 'plr_feature_gate_off' },
  },
]
for (const c of refusals) {
  test(`KUB-22 a resize ${c.name}`, () => {
    assert.deepEqual(refuseResize(c.pod, small, [pod({ cpu: '200m' }, {}, 'other')], c.room ?? room), c.want)
  })
}

test('KUB-22 waiting resizes: first what needs nothing more, then by priority, class and patience', () => {
  const waiting = (name: string, cpu: string, sinceMs: number, more: Partial<Pod['spec']> = {}, qosClass = 'Burstable') => ({
    pod: { ...pod({ cpu }, more, name), status: { qosClass } },
    allocated: pod({ cpu: '100m' }, more, name),
    sinceMs,
  })
  const order = resizeOrder([
    waiting('late', '2', 5),
    waiting('early', '2', 1),
    waiting('guaranteed', '2', 9, {}, 'Guaranteed'),
    waiting('important', '2', 9, { priority: 7 }),
    waiting('smaller', '50m', 9),
  ])
  assert.deepEqual(
    order.map((entry) => entry.pod.metadata.name),
    ['smaller', 'important', 'guaranteed', 'early', 'late'],
  )
})

test("KUB-22 memory below what is in use is refused in upstream's words", () => {
  const low = (what: string) => ({ what, limitBytes: 10, usageBytes: 20 })
  assert.equal(memoryDecreaseError([{ what: 'pod', limitBytes: 21, usageBytes: 20 }]), undefined)
  const none = 'cannot decrease memory limits: attempting to set pod memory limit (20) below current usage (20)'
  assert.equal(memoryDecreaseError([{ what: 'pod', limitBytes: 20, usageBytes: 20 }]), none)
  assert.equal(memoryDecreaseError([low('pod')]), 'cannot decrease memory limits: attempting to set pod memory limit (10) below current usage (20)')
  assert.equal(
    memoryDecreaseError([low('pod'), low('container "c"')]),
    'cannot decrease memory limits: [attempting to set pod memory limit (10) below current usage (20), attempting to set container "c" memory limit (10) below current usage (20)]',
  )
})

test('KUB-22 events describe a resize as JSON', () => {
  assert.equal(
    resizeMessage('Pod resize Deferred', pod({ cpu: '1' }), 2, 'no room'),
    'Pod resize Deferred: {"containers":[{"name":"c","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}],"generation":2,"error":"no room"}',
  )
})

test('KUB-22 between raising and lowering a pod has the higher of both limits', () => {
  const before = { cpuShares: 100, cpuQuotaUs: 20_000, memoryLimitBytes: 100 }
  assert.deepEqual(largerOf(before, { cpuShares: 50, memoryLimitBytes: 200 }), { cpuShares: 100, cpuQuotaUs: -1, memoryLimitBytes: 200 })
  assert.deepEqual(largerOf(undefined, before), before)
})

test('KUB-22 requested resizes are counted by resource, requirement and operation', () => {
  const of = (name: string, resources: object) => ({ name, resources })
  const before = pod({}, { containers: [of('c', { requests: { cpu: '1', memory: '1Gi' } }), of('d', has)], initContainers: [of('i', {})] })
  const after = pod(
    {},
    { containers: [of('c', { requests: { cpu: '500m' }, limits: { cpu: '1' } }), of('d', { ...has })], initContainers: [of('i', { requests: { cpu: '1' } })] },
  )
  assert.deepEqual(
    requestedResizes(before, after).map(({ resource, requirement, operation }) => `${operation} ${resource} ${requirement}`),
    ['add cpu requests', 'add cpu limits', 'decrease cpu requests', 'remove memory requests'],
  )
  assert.deepEqual(requestedResizes(small, pod({ cpu: '0.1', memory: '65536Ki' })), [])
})
