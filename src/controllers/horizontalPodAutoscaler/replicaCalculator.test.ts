/** Upstream's cases of replica_calculator_test.go (v1.36): what goes in, and how many replicas come out. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { formatTime } from '#base/time'
import { groupPods, type PodMetrics } from './podGroups.ts'
import { requestsOf } from './podRequests.ts'
import { maxInt32, replicasByAverage, replicasByPodUsage, replicasByTotal, replicasByUtilization, totalOf } from './replicaCalculator.ts'

const nowMs = Date.parse('2026-01-01T00:00:00Z')
const minute = 60_000
const periods = { cpuInitializationMs: 2 * minute, initialReadinessDelayMs: 10_000 }
const ordinary = { scaleDown: 0.1, scaleUp: 0.1 }
const maxInt64 = 2 ** 63

/** Ready and past its first minutes; `x`: not ready; `h`: ready, but just started; `z`: neither; `p`: Pending; `f`: Failed; `d`: being deleted. */
type PodState = 'r' | 'x' | 'h' | 'z' | 'p' | 'f' | 'd'

function podOf(index: number, state: PodState, request: string | undefined): Pod {
  const isUnready = 'xzpfd'.includes(state)
  const containers = ['a', 'b'].map((name) => ({ name, ...(request === undefined ? {} : { resources: { requests: { cpu: request } } }) }))
  const startMs = 'hz'.includes(state) ? nowMs : nowMs - 3 * minute
  const status = {
    phase: state === 'p' ? 'Pending' : state === 'f' ? 'Failed' : 'Running',
    startTime: formatTime(startMs),
    conditions: [{ type: 'Ready', status: isUnready ? 'False' : 'True' }],
  }
  const metadata = { name: `p${index}`, namespace: 'n', ...(state === 'd' ? { deletionTimestamp: formatTime(nowMs) } : {}) }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers }, status } as Pod
}

interface Setting {
  /** One letter for each pod. */
  readonly pods: string
  /** Default: as many as there are letters. */
  readonly current?: number
  /** One for each pod, in their order. */
  readonly values: readonly number[]
  readonly target: number
  readonly tolerances?: { readonly scaleDown: number; readonly scaleUp: number }
}

function questionOf({ pods, current = pods.length, values, tolerances = ordinary }: Setting, requests: readonly string[] | undefined, resource?: string) {
  const metrics: PodMetrics = new Map(values.map((value, index) => [`p${index}`, { value, atMs: 0, windowMs: minute }]))
  const made = [...pods].map((state, index) => podOf(index, state as PodState, requests ? requests[index] : '1'))
  return { currentReplicas: current, tolerances, pods: made, metrics, resource, periods, nowMs }
}

interface CpuSetting extends Setting {
  readonly requests?: readonly string[]
  /** Counts one container; otherwise each value is that of both containers. */
  readonly container?: string
}

/** Replicas, utilization and usage, or an error. */
type Wanted = readonly [replicas: number, utilization: number, usage: number] | string

function byUtilization({ requests, container, ...setting }: CpuSetting): Wanted {
  const values = container === undefined ? setting.values.map((value) => 2 * value) : setting.values
  try {
    const { replicas, utilization, usage } = replicasByUtilization(questionOf({ ...setting, values }, requests, 'cpu'), setting.target, container)
    return [replicas, utilization, usage]
  } catch (error) {
    return (error as Error).message
  }
}

const uneven = ['900m', '1', '1100m']
const down = [100, 300, 500, 250, 250]
const utilizationCases: readonly [name: string, setting: CpuSetting, want: Wanted][] = [
  ['usage above the target adds pods', { pods: 'rrr', values: [300, 500, 700], target: 30 }, [5, 50, 1000]],
  ['one container is measured alone', { pods: 'rrr', values: [300, 500, 700], target: 30, container: 'b' }, [5, 50, 500]],
  ['a pod that is not ready counts as idle when others are busy', { pods: 'xrr', values: [300, 500, 700], target: 30 }, [4, 60, 1200]],
  ['a pod that just started counts as idle when others are busy', { pods: 'hrr', values: [300, 500, 700], target: 30 }, [4, 60, 1200]],
  ['the container of a pod that just started counts as idle', { pods: 'hrr', values: [300, 500, 700], target: 30, container: 'b' }, [4, 60, 600]],
  ['two pods that are not ready prevent a change', { pods: 'rxx', values: [400, 500, 700], target: 30 }, [3, 40, 800]],
  ['two pods that just started prevent a change', { pods: 'rzz', values: [400, 500, 700], target: 30 }, [3, 40, 800]],
  ['failed pods do not count when adding', { pods: 'rrff', current: 2, values: [500, 700], target: 30 }, [4, 60, 1200]],
  ['failed pods do not count for a container', { pods: 'rrff', current: 2, values: [500, 700], target: 30, container: 'b' }, [4, 60, 600]],
  ['pods that are being deleted do not count when adding', { pods: 'rrdd', current: 2, values: [500, 700], target: 30 }, [4, 60, 1200]],
  ['usage below the target removes pods', { pods: 'rrrrr', values: down, target: 50 }, [3, 28, 560]],
  ['usage of one container below the target removes pods', { pods: 'rrrrr', values: down, target: 50, container: 'b' }, [3, 28, 280]],
  ['pods that are not ready do not count when removing', { pods: 'rrrxx', values: down, target: 50 }, [2, 30, 600]],
  ['containers of pods that are not ready do not count when removing', { pods: 'rrrxx', values: down, target: 50, container: 'b' }, [2, 30, 300]],
  ['pods that are not scheduled do not count when removing', { pods: 'rpppp', values: [100], target: 50 }, [1, 10, 200]],
  ['measurements of pending pods do not count', { pods: 'rpppp', values: down, target: 50, container: 'b' }, [1, 10, 100]],
  ['pods that just started do not count when removing', { pods: 'rrrhh', values: down, target: 50 }, [2, 30, 600]],
  ['the peak of a starting container does not count', { pods: 'rrrhh', values: [100, 300, 500, 1000, 1000], target: 50, container: 'b' }, [2, 30, 300]],
  ['failed pods do not count when removing', { pods: 'rrrrrff', current: 5, values: down, target: 50 }, [3, 28, 560]],
  ['pods that are being deleted do not count when removing', { pods: 'rrrrrdd', current: 5, values: down, target: 50 }, [3, 28, 560]],
  ['usage within the tolerance changes nothing', { pods: 'rrr', values: [1010, 1030, 1020], target: 100, requests: uneven }, [3, 102, 2040]],
  [
    'no tolerance makes one percent count',
    { pods: 'rrr', values: [909, 1010, 1111], target: 100, requests: uneven, tolerances: { scaleDown: 0, scaleUp: 0 } },
    [4, 101, 2020],
  ],
  [
    'a tolerance of 200 percent upward allows 190',
    { pods: 'rrr', values: [1890, 1910, 1900], target: 100, requests: uneven, tolerances: { scaleDown: 0.1, scaleUp: 2 } },
    [3, 190, 3800],
  ],
  [
    'the tolerance downward does not matter upward',
    { pods: 'rrr', values: [1100, 1080, 1090], target: 100, requests: uneven, tolerances: { scaleDown: 2, scaleUp: 0.08 } },
    [4, 109, 2180],
  ],
  [
    'a tolerance of 36 percent downward allows 65 percent',
    { pods: 'rrr', values: [660, 640, 650], target: 100, requests: uneven, tolerances: { scaleDown: 0.36, scaleUp: 0.1 } },
    [3, 65, 1300],
  ],
  [
    'a tolerance of 34 percent downward does not allow 65 percent',
    { pods: 'rrr', values: [660, 640, 650], target: 100, requests: uneven, tolerances: { scaleDown: 0.34, scaleUp: 0.1 } },
    [2, 65, 1300],
  ],
  ['measurements of unknown pods do not count', { pods: 'rrrr', values: [4000, 9500, 3000, 7000, 3200, 2000], target: 100 }, [24, 587, 11_750]],
  ['pods without a measurement count as fully used when removing', { pods: 'rrrr', values: [400, 95], target: 100 }, [3, 24, 495]],
  ['a pod without a measurement changes nothing on target', { pods: 'rr', values: [1000], target: 100 }, [2, 100, 2000]],
  ['a pod without a measurement counts as idle when adding', { pods: 'rr', values: [1900], target: 100 }, [2, 190, 3800]],
  ['a pod without a measurement prevents the removal', { pods: 'rr', values: [600], target: 100 }, [2, 60, 1200]],
  ['unready and unmeasured pods together prevent the removal', { pods: 'xrr', values: [100, 450], target: 50 }, [3, 45, 900]],
  ['starting and unmeasured pods together prevent the removal', { pods: 'hrr', values: [100, 450], target: 50 }, [3, 45, 900]],
  ['unready and unmeasured pods count as idle when adding', { pods: 'xrr', values: [100, 2000], target: 50 }, [4, 200, 4000]],
  ['starting and unmeasured pods count as idle when adding', { pods: 'zrr', values: [100, 2000], target: 50 }, [4, 200, 4000]],
  ['an unready pod is left out while an unmeasured one counts as fully used', { pods: 'xrrr', values: [100, 100, 100], target: 50 }, [3, 10, 200]],
  [
    'an unmeasured pod counts as on target where that is above 100 percent',
    { pods: 'xrrr', values: [200, 100, 100], target: 300, requests: ['1', '1', '2', '2'] },
    [2, 6, 200],
  ],
  ['a surge pod without a measurement does not turn a removal into an addition', { pods: 'rrr', current: 2, values: [100, 100], target: 50 }, [2, 10, 200]],
  ['a pod without requests is an error', { pods: 'r', values: [200], target: 100, requests: [] }, 'missing request for cpu in container a of Pod p0'],
  ['a container that no pod has is an error', { pods: 'r', values: [200], target: 100, container: 'c' }, 'container c not found in Pod p0'],
  ['no pods are an error', { pods: '', values: [200], target: 100 }, 'no pods returned by selector while calculating replica count'],
  ['unready pods alone are an error', { pods: 'x', values: [200], target: 100 }, 'did not receive metrics for targeted pods (pods might be unready)'],
]
for (const [name, setting, want] of utilizationCases) test(`AUT-01 by utilization: ${name}`, () => assert.deepEqual(byUtilization(setting), want))

test('AUT-01 by utilization: measurements of other pods alone are an error', () => {
  const metrics = new Map([['older', { value: 200, atMs: 0, windowMs: minute }]])
  const question = { ...questionOf({ pods: 'r', values: [], target: 100 }, undefined, 'cpu'), metrics }
  assert.throws(() => replicasByUtilization(question, 100), new Error('no metrics returned matched known pods'))
})

const jittered = [400, 200, 310, 290, 302, 298, 301, 299, 300, 300].map((request) => `${request}m`)
const ten = { pods: 'r'.repeat(10), values: Array.from({ length: 10 }, () => 150), requests: jittered }
for (const [target, replicas] of [
  [56, 9],
  [55, 10],
] as const)
  test(`AUT-01 by utilization: ten pods at half of their requests are ${replicas} for a target of ${target} percent`, () =>
    assert.deepEqual(byUtilization({ ...ten, target }), [replicas, 50, 300]))

const podUsageCases: readonly [name: string, setting: Setting, want: readonly [replicas: number, usage: number]][] = [
  ['usage above the target adds pods', { pods: 'rrr', values: [20_000, 10_000, 30_000], target: 15_000 }, [4, 20_000]],
  ['a pod that just started counts', { pods: 'rrz', values: [50_000, 10_000, 30_000], target: 15_000 }, [6, 30_000]],
  ['pods that are not ready count', { pods: 'zrz', values: [50_000, 15_000, 30_000], target: 15_000 }, [7, 31_666]],
  ['a single value above the target adds a pod', { pods: 'r', values: [8600], target: 4400 }, [2, 8600]],
  ['usage below the target removes pods', { pods: 'rrrrr', values: Array(5).fill(12_000), target: 20_000 }, [3, 12_000]],
  ['usage within the tolerance changes nothing', { pods: 'rrr', values: [20_000, 21_000, 21_000], target: 20_000 }, [3, 20_666]],
  [
    'a smaller tolerance upward adds a pod',
    { pods: 'rrr', values: [20_000, 21_000, 21_000], target: 20_000, tolerances: { scaleDown: 0.1, scaleUp: 0.01 } },
    [4, 20_666],
  ],
  ['pods without a measurement change nothing on target', { pods: 'rrrrr', values: [20_000, 19_000, 21_000], target: 20_000 }, [5, 20_000]],
  [
    'a surge pod without a measurement does not turn a removal into an addition',
    { pods: 'rrr', current: 2, values: [10_000, 10_000], target: 17_000 },
    [2, 10_000],
  ],
]
for (const [name, setting, want] of podUsageCases)
  test(`AUT-01 by usage of each pod: ${name}`, () => {
    const { replicas, usage } = replicasByPodUsage(questionOf(setting, undefined), setting.target)
    assert.deepEqual([replicas, usage], want)
  })

const totalCases: readonly [name: string, setting: Setting, want: readonly [replicas: number, usage: number]][] = [
  ['a value above the target adds pods', { pods: 'rrr', values: [20_000], target: 15_000 }, [4, 20_000]],
  ['only ready pods are multiplied', { pods: 'xrx', values: [50_000], target: 10_000 }, [5, 50_000]],
  ['ready pods may be fewer than the replicas', { pods: 'xrx', values: [8600], target: 4400 }, [2, 8600]],
  ['a value below the target removes pods', { pods: 'rrrrr', values: [12_000], target: 20_000 }, [3, 12_000]],
  ['an external value below the target removes pods', { pods: 'rrrrr', values: [8600], target: 14_334 }, [3, 8600]],
  ['a value within the tolerance changes nothing', { pods: 'rrr', values: [20_666], target: 20_000 }, [3, 20_666]],
  ['an external value within the tolerance changes nothing', { pods: 'rrr', values: [8600], target: 8888 }, [3, 8600]],
  ['a smaller tolerance adds a pod', { pods: 'rrr', values: [20_666], target: 20_000, tolerances: { scaleDown: 0.1, scaleUp: 0.01 } }, [4, 20_666]],
  [
    'a smaller tolerance adds a pod for an external value',
    { pods: 'rrr', values: [8900], target: 8800, tolerances: { scaleDown: 0.1, scaleUp: 0.01 } },
    [4, 8900],
  ],
  ['the largest value asks for the largest number of replicas', { pods: 'rrr', values: [maxInt64], target: 1 }, [maxInt32, maxInt64]],
  ['a sum beyond 64 bits is the largest number', { pods: 'rrr', values: [maxInt64 / 2 + 2048, maxInt64 / 2 + 2048], target: maxInt64 }, [3, maxInt64]],
  ['without replicas the ratio is the result', { pods: '', values: [8600], target: 4400 }, [2, 8600]],
  ['without replicas and usage there are none', { pods: '', values: [0], target: 4400 }, [0, 0]],
]
for (const [name, setting, want] of totalCases)
  test(`AUT-01 by one value: ${name}`, () => {
    const { replicas, usage } = replicasByTotal(questionOf(setting, undefined), totalOf(setting.values), setting.target)
    assert.deepEqual([replicas, usage], want)
  })

const tight = { scaleDown: 0.1, scaleUp: 0.01 }
const averageCases: readonly [name: string, replicas: number, usage: number, target: number, tolerances: Setting['tolerances'], want: [number, number]][] = [
  ['more than the target adds pods', 3, 20_000, 5000, ordinary, [4, 6667]],
  ['more than the target adds pods for an external value', 3, 8600, 2150, ordinary, [4, 2867]],
  ['less than the target removes pods', 5, 6000, 2000, ordinary, [3, 1200]],
  ['less than the target removes pods for an external value', 5, 8600, 2867, ordinary, [3, 1720]],
  ['the tolerance changes nothing', 4, 20_166, 5000, ordinary, [4, 5042]],
  ['the tolerance changes nothing for an external value', 3, 8600, 2900, ordinary, [3, 2867]],
  ['a smaller tolerance adds a pod', 4, 20_208, 5000, tight, [5, 5052]],
  ['a smaller tolerance adds a pod for an external value', 3, 8600, 2800, tight, [4, 2867]],
  ['the largest value asks for the largest number of replicas', 1, maxInt64, 1, ordinary, [maxInt32, maxInt64]],
  ['the largest target keeps one replica', 1, maxInt64, maxInt64, ordinary, [1, maxInt64]],
  ['a target without replicas gets what the value asks for', 0, 8600, 4400, ordinary, [2, 8600]],
  ['a target without replicas and usage gets none', 0, 0, 4400, ordinary, [0, 0]],
]
for (const [name, statusReplicas, usage, target, tolerances = ordinary, want] of averageCases)
  test(`AUT-01 by one value divided among the replicas: ${name}`, () => {
    const found = replicasByAverage(statusReplicas, tolerances, usage, target)
    assert.deepEqual([found.replicas, found.usage], want)
  })

interface GroupingCase {
  readonly name: string
  readonly resource?: string
  readonly phase?: string
  readonly startedMs?: number
  readonly ready?: readonly [status: string, sinceMs: number]
  readonly metric?: { readonly ageMs: number; readonly windowMs: number }
  readonly want: 'ready' | 'unready' | 'missing' | 'ignored'
  readonly isDeleted?: boolean
}

const old = { ageMs: nowMs, windowMs: 0 }
const groupingCases: readonly GroupingCase[] = [
  { name: 'memory counts without a condition', resource: 'memory', metric: { ageMs: 0, windowMs: minute }, want: 'ready' },
  { name: 'CPU of a pod without a condition does not count', startedMs: 0, metric: old, want: 'unready' },
  {
    name: 'CPU measured while ready counts in the first minutes',
    startedMs: minute,
    ready: ['True', 30_000],
    metric: { ageMs: 0, windowMs: 30_000 },
    want: 'ready',
  },
  { name: 'CPU measured partly before that does not', startedMs: minute, ready: ['True', 30_000], metric: { ageMs: 0, windowMs: minute }, want: 'unready' },
  {
    name: 'CPU of a pod that became unready at once does not count',
    startedMs: 10 * minute,
    ready: ['False', 10 * minute - 6000],
    metric: old,
    want: 'unready',
  },
  {
    name: 'old CPU counts after the first minutes',
    startedMs: 3 * minute,
    ready: ['True', 3 * minute],
    metric: { ageMs: 2 * minute, windowMs: minute },
    want: 'ready',
  },
  { name: 'CPU of a pod that was ready counts', startedMs: 10 * minute, ready: ['False', 9 * minute], metric: old, want: 'ready' },
  { name: 'CPU counts exactly at the end of the delay', startedMs: 10 * minute, ready: ['False', 10 * minute - 10_000], metric: old, want: 'ready' },
  { name: 'a pod without a measurement is missing', startedMs: 3 * minute, want: 'missing' },
  { name: 'a pending pod is not ready', phase: 'Pending', want: 'unready' },
  { name: 'a pod that is being deleted is left out', phase: 'Pending', isDeleted: true, metric: old, want: 'ignored' },
  { name: 'a failed pod is left out', phase: 'Failed', metric: old, want: 'ignored' },
]
for (const { name, resource = 'cpu', phase = 'Succeeded', startedMs, ready, metric, want, isDeleted = false } of groupingCases)
  test(`AUT-01 grouping: ${name}`, () => {
    const ago = (ms: number) => formatTime(nowMs - ms)
    const status = {
      phase,
      ...(startedMs === undefined ? {} : { startTime: ago(startedMs) }),
      ...(ready ? { conditions: [{ type: 'Ready', status: ready[0], lastTransitionTime: ago(ready[1]) }] } : {}),
    }
    const metadata = { name: 'p', ...(isDeleted ? { deletionTimestamp: ago(0) } : {}) }
    const pods = [{ apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] }, status } as unknown as Pod]
    const metrics: PodMetrics = new Map(metric ? [['p', { value: 1, atMs: nowMs - metric.ageMs, windowMs: metric.windowMs }]] : [])
    const groups = groupPods({ pods, metrics, resource, periods, nowMs })
    const found = groups.ready === 1 ? 'ready' : groups.unready.has('p') ? 'unready' : groups.missing.has('p') ? 'missing' : 'ignored'
    assert.deepEqual([found, groups.measured.size], [want, want === 'ready' ? 1 : 0])
  })

const request = (cpu: string) => ({ resources: { requests: { cpu } } })
const both = [
  { name: 'a', ...request('100m') },
  { name: 'b', ...request('50m') },
]
const withoutFirst = [{ name: 'a' }, both[1]]
const sidecar = { name: 's', restartPolicy: 'Always', ...request('50m') }
const requestCases: readonly [name: string, spec: object, container: string, want: number | string][] = [
  ['containers are summed', { containers: both }, '', 150],
  ['the pod level replaces the sum', { containers: both, ...request('800m') }, '', 800],
  ['the pod level replaces a sum that is not complete', { containers: withoutFirst, ...request('800m') }, '', 800],
  ['a container without a request is an error', { containers: withoutFirst }, '', 'missing request for cpu in container a of Pod p'],
  ['one container counts alone', { containers: both }, 'a', 100],
  ['one container counts without regard to the pod level', { containers: both, ...request('800m') }, 'a', 100],
  ['sidecars count, other init containers do not', { containers: [both[0]], initContainers: [{ name: 'i', ...request('20m') }, sidecar] }, '', 150],
  ['a sidecar may be the container', { containers: [both[0]], initContainers: [sidecar] }, 's', 50],
  ['a container that is not there is an error', { containers: both }, 'x', 'container x not found in Pod p'],
]
for (const [name, spec, container, want] of requestCases)
  test(`AUT-01 requests: ${name}`, () => {
    const pods = [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec } as unknown as Pod]
    if (typeof want === 'string') assert.throws(() => requestsOf(pods, 'cpu', container), new Error(want))
    else assert.deepEqual(requestsOf(pods, 'cpu', container), new Map([['p', want]]))
  })
