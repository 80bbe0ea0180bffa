/** Upstream's cases of horizontal_test.go (v1.36) about minimum, maximum, stabilisation and rates. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HorizontalPodAutoscalerBehavior, HPAScalingRules } from '#api/gen/types/autoscaling.v2'
import { type LimitQuestion, limitReplicas, type ScaleHistory, withRecommendation, withScaleEvent } from './limits.ts'
import { maxInt32 } from './replicaCalculator.ts'

const nowMs = Date.parse('2026-01-01T00:00:00Z')
const minute = 60_000
const empty: ScaleHistory = { recommendations: [], ups: [], downs: [] }

interface Setting {
  readonly current: number
  readonly desired: number
  readonly min?: number
  readonly max?: number
  readonly history?: Partial<ScaleHistory>
}

function question({ current, desired, min = 1, max = 1000, history = {} }: Setting): LimitQuestion {
  const counts = { currentReplicas: current, desiredReplicas: desired, minReplicas: min, maxReplicas: max }
  return { ...counts, history: { ...empty, ...history }, downscaleWindowMs: 5 * minute, nowMs }
}

/** As API defaults fill them in, without stabilisation. */
function behaviorOf({ scaleUp, scaleDown }: HorizontalPodAutoscalerBehavior): HorizontalPodAutoscalerBehavior {
  const percent = { type: 'Percent', value: 100, periodSeconds: 15 }
  const common = { stabilizationWindowSeconds: 0, selectPolicy: 'Max' }
  const up = { ...common, policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }, percent] }
  return { scaleUp: { ...up, ...scaleUp }, scaleDown: { ...common, policies: [percent], ...scaleDown } }
}

const pods = (value: number, periodSeconds: number) => ({ type: 'Pods', value, periodSeconds })
const percent = (value: number, periodSeconds: number) => ({ type: 'Percent', value, periodSeconds })
const up = (...policies: NonNullable<HPAScalingRules['policies']>) => ({ scaleUp: { policies } })
const down = (...policies: NonNullable<HPAScalingRules['policies']>) => ({ scaleDown: { policies } })

/** Changes spread over the last two minutes, the last one the newest. */
const spread = (...changes: number[]) => {
  const segmentMs = (2 * minute) / changes.length
  return changes.map((change, index) => ({ change, atMs: nowMs - 2 * minute + segmentMs * (index + 0.5) }))
}

type Want = readonly [replicas: number, reason: string]

const defaultCases: readonly [name: string, setting: Setting, want: Want][] = [
  ['a number within the range stays', { current: 5, desired: 7, min: 3, max: 8 }, [7, 'DesiredWithinRange']],
  ['the minimum is kept', { current: 3, desired: 1, min: 2, max: 8 }, [2, 'TooFewReplicas']],
  ['zero stays where it is the minimum', { current: 1, desired: 0, min: 0, max: 10 }, [0, 'DesiredWithinRange']],
  ['the maximum is kept', { current: 20, desired: 1000, max: 10 }, [10, 'TooManyReplicas']],
  ['the replicas double at most', { current: 3, desired: 1000, max: 2000 }, [6, 'ScaleUpLimit']],
  ['one replica becomes four at most', { current: 1, desired: 1000, max: 2000 }, [4, 'ScaleUpLimit']],
]
for (const [name, setting, want] of defaultCases)
  test(`AUT-01 limits without a behavior: ${name}`, () => {
    const { replicas, scalingLimited } = limitReplicas(question(setting), undefined)
    assert.deepEqual([replicas, scalingLimited.reason], want)
    assert.equal(scalingLimited.isLimited, want[1] !== 'DesiredWithinRange')
  })

const rateCases: readonly [name: string, setting: Setting, behavior: HorizontalPodAutoscalerBehavior, want: Want][] = [
  ['a number within the range stays', { current: 5, desired: 7, min: 3, max: 8 }, {}, [7, 'DesiredWithinRange']],
  ['the minimum is kept', { current: 3, desired: 1, min: 2, max: 8 }, {}, [2, 'TooFewReplicas']],
  ['zero stays where it is the minimum', { current: 1, desired: 0, min: 0, max: 10 }, {}, [0, 'DesiredWithinRange']],
  ['the maximum is kept from above', { current: 20, desired: 1000, max: 10 }, {}, [10, 'TooManyReplicas']],
  ['the maximum is kept', { current: 100, desired: 1000, min: 100, max: 150 }, {}, [150, 'TooManyReplicas']],
  ['one percent adds a pod', { current: 3, desired: 1000, max: 2000 }, up(percent(1, 60)), [4, 'ScaleUpLimit']],
  ['20 pods a minute are removed', { current: 1000, desired: 3, min: 3, max: 2000 }, down(pods(20, 60)), [980, 'ScaleDownLimit']],
  ['the defaults double', { current: 10, desired: 50 }, {}, [20, 'ScaleUpLimit']],
  ['upward the policy that adds more decides: pods', { current: 10, desired: 500 }, up(pods(100, 60), percent(100, 60)), [110, 'ScaleUpLimit']],
  ['upward the policy that adds more decides: percent', { current: 10, desired: 500 }, up(pods(2, 60), percent(100, 60)), [20, 'ScaleUpLimit']],
  ['a wide policy of pods does not limit', { current: 10, desired: 50 }, up(pods(100, 60)), [50, 'DesiredWithinRange']],
  ['pods limit upward', { current: 10, desired: 50 }, up(pods(30, 60)), [40, 'ScaleUpLimit']],
  ['percent limit upward', { current: 10, desired: 50 }, up(percent(200, 60)), [30, 'ScaleUpLimit']],
  ['downward the policy that removes more decides', { current: 100, desired: 2 }, down(pods(20, 60), percent(1, 60)), [80, 'ScaleDownLimit']],
  ['downward two pods are more than one percent', { current: 100, desired: 2 }, down(pods(2, 60), percent(1, 60)), [98, 'ScaleDownLimit']],
  ['a wide policy of pods goes down to the minimum', { current: 10, desired: 0 }, down(pods(100, 60)), [1, 'TooFewReplicas']],
  ['100 percent go down to the minimum', { current: 10, desired: 2, min: 5 }, down(percent(100, 60)), [5, 'TooFewReplicas']],
  ['pods limit downward', { current: 10, desired: 2 }, down(pods(5, 60)), [5, 'ScaleDownLimit']],
  ['50 percent allow half', { current: 10, desired: 5 }, down(percent(50, 60)), [5, 'DesiredWithinRange']],
  [
    'the maximum is kept after events, with pods',
    { current: 100, desired: 500, max: 200, history: { ups: spread(1, 5, 9) } },
    up(pods(300, 60)),
    [200, 'TooManyReplicas'],
  ],
  [
    'the maximum is kept after events, with percent',
    { current: 100, desired: 500, max: 200, history: { ups: spread(1, 5, 9) } },
    up(percent(10_000, 60)),
    [200, 'TooManyReplicas'],
  ],
  ['a used up rate keeps the replicas', { current: 100, desired: 500, history: { ups: spread(1, 5, 9) } }, up(pods(5, 120)), [100, 'ScaleUpLimit']],
  ['pods count from the start of the period', { current: 100, desired: 500, history: { ups: spread(1, 5, 9) } }, up(pods(150, 120)), [235, 'ScaleUpLimit']],
  [
    'percent count from the start of the period',
    { current: 100, desired: 500, history: { ups: spread(1, 5, 9) } },
    up(percent(200, 120)),
    [255, 'ScaleUpLimit'],
  ],
  [
    'removals of the period count upward',
    { current: 6, desired: 24, history: { ups: spread(4), downs: spread(2) } },
    up(percent(300, 300)),
    [16, 'ScaleUpLimit'],
  ],
  ['events older than the period do not count', { current: 10, desired: 5, history: { downs: spread(1, 5, 9) } }, {}, [5, 'DesiredWithinRange']],
  ['the minimum is kept after events', { current: 100, desired: 0, history: { downs: spread(1, 5, 9) } }, down(pods(115, 120)), [1, 'TooFewReplicas']],
  [
    'a higher minimum is kept after events',
    { current: 100, desired: 0, min: 5, history: { downs: spread(1, 5, 9) } },
    down(pods(130, 120)),
    [5, 'TooFewReplicas'],
  ],
  [
    'the minimum is kept after events, with percent',
    { current: 100, desired: 2, min: 5, history: { downs: spread(1, 5, 9) } },
    down(percent(100, 120)),
    [5, 'TooFewReplicas'],
  ],
  ['a used up rate of pods removes none', { current: 100, desired: 2, history: { downs: spread(1, 5, 9) } }, down(pods(5, 120)), [100, 'ScaleDownLimit']],
  ['half of what was there remains', { current: 100, desired: 0, history: { downs: spread(2, 4, 6) } }, down(percent(50, 120)), [56, 'ScaleDownLimit']],
  [
    'additions of the period count downward',
    { current: 10, desired: 1, history: { ups: spread(2), downs: spread(4) } },
    down(percent(50, 180)),
    [6, 'ScaleDownLimit'],
  ],
  [
    'a used up rate of percent removes none',
    { current: 100, desired: 0, history: { downs: spread(10, 10, 10) } },
    down(percent(10, 120)),
    [100, 'ScaleDownLimit'],
  ],
  [
    'a limit below zero does not limit',
    { current: 10, desired: 5, history: { downs: spread(10, 10, 10) } },
    down(percent(1000, 120)),
    [5, 'DesiredWithinRange'],
  ],
  [
    'each policy counts the events of its own period',
    { current: 100, desired: 500, history: { ups: spread(8, 12, 9, 11) } },
    up(pods(50, 120), percent(10, 60)),
    [110, 'ScaleUpLimit'],
  ],
  [
    'the policy that changes least is chosen upward',
    { current: 1, desired: 10 },
    { scaleUp: { selectPolicy: 'Min', policies: [pods(2, 60), percent(50, 60)] } },
    [2, 'ScaleUpLimit'],
  ],
  [
    'the policy that changes least is chosen downward',
    { current: 5, desired: 1 },
    { scaleDown: { selectPolicy: 'Min', policies: [pods(2, 60), percent(50, 60)] } },
    [3, 'ScaleDownLimit'],
  ],
  ['a disabled direction upward adds none', { current: 5, desired: 10 }, { scaleUp: { selectPolicy: 'Disabled' } }, [5, 'ScaleUpLimit']],
  ['a disabled direction downward removes none', { current: 5, desired: 1 }, { scaleDown: { selectPolicy: 'Disabled' } }, [5, 'ScaleDownLimit']],
  [
    'percent beyond 32 bits end at the largest number',
    { current: 2_000_000_000, desired: maxInt32, max: maxInt32 },
    up(percent(maxInt32, 60)),
    [maxInt32, 'DesiredWithinRange'],
  ],
]
for (const [name, setting, behavior, want] of rateCases)
  test(`AUT-01 rates: ${name}`, () => {
    const { replicas, scalingLimited } = limitReplicas(question(setting), behaviorOf(behavior))
    assert.deepEqual([replicas, scalingLimited.reason], want)
  })

const recommended = (...list: readonly (readonly [replicas: number, minutesAgo: number])[]) => ({
  recommendations: list.map(([replicas, minutes]) => ({ replicas, atMs: nowMs - minutes * minute })),
})

const downCases: readonly [name: string, history: Partial<ScaleHistory>, desired: number, want: number][] = [
  ['nothing was recommended', {}, 5, 5],
  ['the highest recommendation counts', recommended([4, 2], [5, 1]), 3, 5],
  ['lower recommendations do not count', recommended([1, 2], [2, 1]), 3, 3],
  ['old recommendations do not count', recommended([10, 10], [9, 9]), 3, 3],
  ['old and new recommendations are distinguished', recommended([10, 10], [4, 1], [5, 2], [9, 9]), 3, 5],
]
for (const [name, history, desired, want] of downCases)
  test(`AUT-01 stabilisation without a behavior: ${name}`, () => {
    const { stabilized, ableToScale } = limitReplicas(question({ current: 100, desired, history }), undefined)
    assert.deepEqual([stabilized, ableToScale.reason], [want, want === desired ? 'ReadyForNewScale' : 'ScaleDownStabilized'])
  })

interface WindowCase {
  readonly name: string
  readonly history?: Partial<ScaleHistory>
  readonly current: number
  readonly desired: number
  readonly up?: number
  readonly down?: number
  readonly want: number
}

const windowCases: readonly WindowCase[] = [
  { name: 'nothing was recommended', current: 100, desired: 5, want: 5 },
  { name: 'the highest of the window holds downward', history: recommended([4, 2], [5, 1]), current: 100, desired: 3, down: 180, want: 5 },
  { name: 'the lowest of the window holds upward', history: recommended([4, 2], [5, 1]), current: 1, desired: 7, up: 300, want: 4 },
  { name: 'a window upward does not hold downward', history: recommended([1, 2], [2, 1]), current: 100, desired: 3, up: 300, want: 3 },
  { name: 'a window downward does not hold upward', history: recommended([4, 2], [5, 1]), current: 1, desired: 3, down: 300, want: 3 },
  { name: 'old recommendations do not hold downward', history: recommended([10, 10], [9, 9]), current: 100, desired: 3, want: 3 },
  { name: 'old recommendations do not hold upward', history: recommended([10, 10], [9, 9]), current: 1, desired: 100, want: 100 },
  { name: 'only the window counts downward', history: recommended([10, 10], [4, 1], [5, 2], [9, 9]), current: 100, desired: 3, down: 180, want: 5 },
  { name: 'only the window counts upward', history: recommended([10, 100], [6, 1], [5, 2], [9, 3]), current: 1, desired: 100, up: 300, want: 5 },
  { name: 'a falling recommendation never adds', history: recommended([2, 100], [3, 3]), current: 2, desired: 1, up: 300, down: 300, want: 2 },
  { name: 'a rising recommendation never removes', history: recommended([2, 100], [1, 3]), current: 2, desired: 3, up: 300, down: 300, want: 2 },
]
for (const { name, history = {}, current, desired, up = 0, down = 0, want } of windowCases)
  test(`AUT-01 stabilisation by windows: ${name}`, () => {
    const behavior = behaviorOf({ scaleUp: { stabilizationWindowSeconds: up }, scaleDown: { stabilizationWindowSeconds: down } })
    const { stabilized, ableToScale } = limitReplicas(question({ current, desired, history }), behavior)
    const held = desired >= current ? 'ScaleUpStabilized' : 'ScaleDownStabilized'
    assert.deepEqual([stabilized, ableToScale.reason], [want, want === desired ? 'ReadyForNewScale' : held])
  })

test('AUT-01 stabilisation by windows: a behavior without a window downward has that of the controller', () => {
  const { stabilizationWindowSeconds: _, ...scaleDown } = behaviorOf({}).scaleDown ?? {}
  const { stabilized } = limitReplicas(question({ current: 10, desired: 3, history: recommended([8, 4]) }), { ...behaviorOf({}), scaleDown })
  assert.equal(stabilized, 8)
})

test('AUT-01 the history forgets what is too old to matter', () => {
  const longAgo = nowMs - 61 * minute
  const before = { recommendations: [{ replicas: 1, atMs: longAgo }], ups: [{ change: 1, atMs: longAgo }], downs: [{ change: 1, atMs: longAgo }] }
  const recommendedNow = withRecommendation(before, 3, nowMs, 5 * minute)
  assert.deepEqual(recommendedNow.recommendations, [{ replicas: 3, atMs: nowMs }])
  assert.deepEqual(withRecommendation(before, 3, nowMs, 120 * minute).recommendations.length, 2)
  assert.deepEqual(withScaleEvent(before, 3, 7, nowMs).ups, [{ change: 4, atMs: nowMs }])
  assert.deepEqual(withScaleEvent(before, 7, 3, nowMs).downs, [{ change: 4, atMs: nowMs }])
})
