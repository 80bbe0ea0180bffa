import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HorizontalPodAutoscaler } from '#api/gen/types/autoscaling.v2'
import { FieldPath } from '#api/machinery/fieldPath'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { horizontalPodAutoscaler } from './horizontalPodAutoscaler.ts'
import { toV1, toV2 } from './v1Conversion.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)
const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' }

function make(spec: object = {}, status: object = { desiredReplicas: 0 }): HorizontalPodAutoscaler {
  const obj = {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'h' },
    spec: { maxReplicas: 5, scaleTargetRef, ...spec },
    status,
  }
  horizontalPodAutoscaler.defaults?.(obj as HorizontalPodAutoscaler, 'v2')
  return obj as HorizontalPodAutoscaler
}

test('API-17 an autoscaler’s defaults', () => {
  const { minReplicas, metrics, behavior } = make({ behavior: { scaleUp: { stabilizationWindowSeconds: 5 } } }).spec
  const percent = { type: 'Percent', value: 100, periodSeconds: 15 }
  assert.equal(minReplicas, 1)
  assert.deepEqual(metrics, [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } }])
  assert.deepEqual(behavior, {
    scaleUp: { stabilizationWindowSeconds: 5, selectPolicy: 'Max', policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }, percent] },
    scaleDown: { selectPolicy: 'Max', policies: [percent] },
  })
})

const metric = (fields: object) => ({ metrics: [fields] })
const at = 'spec.metrics[0]'
const target = { type: 'AverageValue', averageValue: '1' }
const up = (scaleUp: object) => ({ behavior: { scaleUp } })
const cases: [name: string, spec: object, want: string[]][] = [
  ['good', {}, []],
  [
    'zero',
    { minReplicas: 0 },
    [
      'spec.minReplicas: Invalid value: 0: must be greater than or equal to 1',
      'spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas',
    ],
  ],
  [
    'no maximum',
    { maxReplicas: 0, minReplicas: undefined },
    ['spec.maxReplicas: Required value: must be set and greater than 0', 'spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`'],
  ],
  [
    'a negative maximum',
    { maxReplicas: -1 },
    [
      'spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1',
      'spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`',
    ],
  ],
  [
    'a target without a group',
    { scaleTargetRef: { apiVersion: 'v1', kind: 'Deployment', name: 'd' } },
    ['spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group'],
  ],
  ['a target of the core group', { scaleTargetRef: { kind: 'ReplicationController', name: 'd' } }, []],
  [
    'a target with a malformed version',
    { scaleTargetRef: { apiVersion: 'a/b/c', kind: 'ReplicationController', name: 'd' } },
    ['spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
  ],
  [
    'an object with a malformed version',
    metric({ type: 'Object', object: { describedObject: { apiVersion: 'a/b/c', kind: 'K', name: 'n' }, metric: { name: 'm' }, target } }),
    [`${at}.object.describedObject.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`],
  ],
  [
    'no target',
    { scaleTargetRef: { name: 'a/b' } },
    [
      'spec.scaleTargetRef.kind: Required value',
      'spec.scaleTargetRef.name: Invalid value: "a/b": may not contain \'/\'',
      'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
    ],
  ],
  [
    'unknown type',
    metric({ type: 'Guess' }),
    [`${at}.type: Unsupported value: "Guess": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`],
  ],
  [
    'source of another type',
    metric({ type: 'Pods', resource: { name: 'cpu', target } }),
    [`${at}.pods: Required value: must populate information for the given metric source`],
  ],
  [
    'two sources',
    metric({ type: 'Pods', pods: { metric: { name: 'm' }, target }, resource: { name: 'cpu', target } }),
    [`${at}.resource: Forbidden: must populate the given metric source only`],
  ],
  ['a metric without a name', metric({ type: 'Pods', pods: { target } }), [`${at}.pods.metric.name: Required value: must specify a metric name`]],
  [
    'an object without a value',
    metric({ type: 'Object', object: { describedObject: scaleTargetRef, metric: { name: 'm' }, target: { type: 'Value' } } }),
    [`${at}.object.target.averageValue: Required value: must set either a target value or averageValue`],
  ],
  [
    'too much of a target',
    metric({ type: 'External', external: { metric: { name: 'm' }, target: { type: 'Value', value: '-1', averageValue: '2' } } }),
    [
      `${at}.external.target.value: Invalid value: "-1": must be positive`,
      `${at}.external.target.value: Forbidden: may not set both a target value for metric and a per-pod target`,
    ],
  ],
  [
    'a resource’s target',
    metric({ type: 'Resource', resource: { name: 'cpu', target: { averageUtilization: 0 } } }),
    [
      `${at}.resource.target.type: Required value: must specify a metric target type`,
      `${at}.resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue`,
      `${at}.resource.target.averageUtilization: Invalid value: 0: must be greater than 0`,
    ],
  ],
  [
    'a container',
    metric({ type: 'ContainerResource', containerResource: { name: 'cpu', target } }),
    [`${at}.containerResource.container: Required value: must specify a container`],
  ],
  [
    'windows',
    up({ stabilizationWindowSeconds: 3601 }),
    ['spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600'],
  ],
  [
    'policies',
    up({ selectPolicy: 'Any', policies: [{ type: 'Many', value: 0, periodSeconds: 1801 }] }),
    [
      'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Any": supported values: "Disabled", "Max", "Min"',
      'spec.behavior.scaleUp.policies[0].type: Unsupported value: "Many": supported values: "Percent", "Pods"',
      'spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero',
      'spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800',
    ],
  ],
  ['no policies', up({ policies: [] }), ['spec.behavior.scaleUp.policies: Required value: must specify at least one Policy']],
]
for (const [name, spec, want] of cases)
  test(`API-17 autoscaler validation: ${name}`, () => assert.deepEqual(texts(horizontalPodAutoscaler.validate?.({ obj: make(spec), path, context })), want))

const external = metric({ type: 'External', external: { metric: { name: 'm' }, target } })
const zeroCases: [name: string, spec: object, featureGates: Record<string, boolean>, old: object | undefined, want: string[]][] = [
  ['is allowed with the gate', { ...external, minReplicas: 0 }, { HPAScaleToZero: true }, undefined, []],
  ['stays allowed without the gate', { ...external, minReplicas: 0 }, {}, { ...external, minReplicas: 0 }, []],
  ['is refused without the gate', { ...external, minReplicas: 0 }, {}, external, ['spec.minReplicas: Invalid value: 0: must be greater than or equal to 1']],
  [
    'needs a metric that has values without pods',
    { minReplicas: 0 },
    { HPAScaleToZero: true },
    undefined,
    ['spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas'],
  ],
  [
    'is not below zero',
    { ...external, minReplicas: -1 },
    { HPAScaleToZero: true },
    undefined,
    ['spec.minReplicas: Invalid value: -1: must be greater than or equal to 0'],
  ],
]
for (const [name, spec, featureGates, old, want] of zeroCases)
  test(`API-17 AUT-01 a minimum of zero ${name}`, () => {
    const input = { obj: make(spec), path, context: { ...context, featureGates } }
    const { validate, validateUpdate } = horizontalPodAutoscaler
    assert.deepEqual(texts(old ? validateUpdate?.({ ...input, old: make(old) }) : validate?.(input)), want)
  })

test('API-17 an autoscaler keeps the versions of references that it has', () => {
  const malformed = { apiVersion: 'a/b/c', kind: 'K', name: 'n' }
  const spec = { scaleTargetRef: malformed, ...metric({ type: 'Object', object: { describedObject: malformed, metric: { name: 'm' }, target } }) }
  assert.deepEqual(texts(horizontalPodAutoscaler.validateUpdate?.({ obj: make(spec), old: make(spec), path, context })), [])
})

const everything = make(
  {
    metrics: [
      { type: 'Pods', pods: { metric: { name: 'm', selector: { matchLabels: { a: 'b' } } }, target } },
      { type: 'Object', object: { describedObject: scaleTargetRef, metric: { name: 'o' }, target: { type: 'Value', value: '3' } } },
      { type: 'External', external: { metric: { name: 'e', selector: {} }, target } },
      { type: 'ContainerResource', containerResource: { name: 'memory', container: 'c', target } },
      { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
    ],
    behavior: {},
  },
  {
    desiredReplicas: 2,
    currentReplicas: 1,
    currentMetrics: [
      { type: 'Object', object: { describedObject: scaleTargetRef, metric: { name: 'o' }, current: { value: '2', averageValue: '1' } } },
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 40, averageValue: '400m' } } },
    ],
    conditions: [{ type: 'AbleToScale', status: 'True' }],
  },
)

test('API-17 an autoscaler is unchanged by a round trip through v1', () => {
  assert.deepEqual(toV2(toV1(deepCopy(everything))), everything)
})

test('API-17 v1 carries the rest in upstream’s annotations, in v1’s words', () => {
  const { metadata, spec, status } = toV1(deepCopy(everything))
  const annotations = Object.fromEntries(Object.entries(metadata.annotations ?? {}).map(([key, value]) => [key.replace(/^.*\//, ''), JSON.parse(value)]))
  assert.deepEqual(Object.keys(annotations).sort(), ['behavior', 'conditions', 'current-metrics', 'metrics'])
  assert.deepEqual(annotations.metrics, [
    { type: 'Pods', pods: { metricName: 'm', selector: { matchLabels: { a: 'b' } }, targetAverageValue: '1' } },
    { type: 'Object', object: { target: scaleTargetRef, metricName: 'o', targetValue: '3' } },
    { type: 'External', external: { metricName: 'e', metricSelector: {}, targetAverageValue: '1' } },
    { type: 'ContainerResource', containerResource: { name: 'memory', container: 'c', targetAverageValue: '1' } },
  ])
  assert.deepEqual(annotations['current-metrics'][0].object, { target: scaleTargetRef, metricName: 'o', currentValue: '2', averageValue: '1' })
  assert.deepEqual([spec.targetCPUUtilizationPercentage, status.currentCPUUtilizationPercentage], [50, 40])
})

test('API-17 annotations that are no JSON are passed over and dropped', () => {
  const v1 = toV1(make())
  v1.metadata.annotations = { 'autoscaling.alpha.kubernetes.io/metrics': '{', 'autoscaling.alpha.kubernetes.io/behavior': '[1]', mine: 'x' }
  const v2 = toV2(v1)
  assert.deepEqual([v2.spec.metrics?.length, v2.spec.behavior, v2.metadata.annotations], [1, undefined, { mine: 'x' }])
})

test('API-17 an autoscaler’s status counts', () => {
  const obj = make({}, { desiredReplicas: -1, currentReplicas: -2 })
  assert.deepEqual(texts(horizontalPodAutoscaler.status?.validateUpdate?.({ obj, old: obj, path, context })), [
    'status.currentReplicas: Invalid value: -2: must be greater than or equal to 0',
    'status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0',
  ])
})
