/** Upstream's cases of horizontal_test.go (v1.36): what one sync of an autoscaler sets, writes into the status, records and counts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MetricSpec } from '#api/gen/types/autoscaling.v2'
import { type SyncOutcome, type SyncSetting, syncOnce } from '#testing/autoscalerFixture'

const cpu = (averageUtilization: number): MetricSpec => ({ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } })
const describedObject = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'other' }
const ofPods = (averageValue: string): MetricSpec => ({ type: 'Pods', pods: { metric: { name: 'qps' }, target: { type: 'AverageValue', averageValue } } })
const ofObject = (target: object): MetricSpec => ({ type: 'Object', object: { describedObject, metric: { name: 'qps' }, target: target as never } })
const external = (target: object): MetricSpec => ({ type: 'External', external: { metric: { name: 'qps', selector: {} }, target: target as never } })
const value = (value: string) => ({ type: 'Value', value })
const average = (averageValue: string) => ({ type: 'AverageValue', averageValue })
const cheese: MetricSpec = { type: 'CheddarCheese' }

const active = 'ScalingActive True ValidMetricFound'
const rescaled = 'AbleToScale True SucceededRescale'
const unchanged = 'AbleToScale True ReadyForNewScale'
const found = 'AbleToScale True SucceededGetScale'
const within = 'ScalingLimited False DesiredWithinRange'
const tooFew = 'ScalingLimited True TooFewReplicas'
const tooMany = 'ScalingLimited True TooManyReplicas'
const scaledToZero = { type: 'ScaledToZero', status: 'True', reason: 'ScaledToZero' }
const disabled = [found, 'ScalingActive False ScalingDisabled']
const fromZero = ['ScaledToZero False NotScaledToZero', rescaled, active]
const stopped = (reason: string) => [found, `ScalingActive False ${reason}`]
const cpuReason = 'cpu resource utilization (percentage of request) above target'
const size = (replicas: number, reason: string) => `Normal SuccessfulRescale New size: ${replicas}; reason: ${reason}`
const below = 'All metrics below target'
const failedTo = 'internal: failed to compute desired number of replicas based on listed metrics for Deployment/n/d: '

const up = ['Resource scale_up none']
const cases: readonly [name: string, setting: SyncSetting, want: SyncOutcome][] = [
  [
    'CPU above the target adds pods',
    { replicas: 3, usage: [300, 500, 700], metrics: [cpu(30)] },
    { desired: 5, conditions: [rescaled, active, within], events: [size(5, cpuReason)], computed: up },
  ],
  [
    'a metric of each pod above the target adds pods',
    { replicas: 3, values: ['20', '10', '30'], metrics: [ofPods('15')] },
    { desired: 4, conditions: [rescaled, active, within], events: [size(4, 'pods metric qps above target')], computed: ['Pods scale_up none'] },
  ],
  [
    'a metric of an object above the target adds pods',
    { replicas: 3, values: ['20'], metrics: [ofObject(value('15'))] },
    { desired: 4, conditions: [rescaled, active, within], events: [size(4, 'Deployment metric qps above target')], computed: ['Object scale_up none'] },
  ],
  [
    'a metric of an object is divided among the pods',
    { replicas: 3, values: ['40'], metrics: [ofObject(average('10'))] },
    { desired: 4, conditions: [rescaled, active, within], events: [size(4, 'external metric qps(nil) above target')], computed: ['Object scale_up none'] },
  ],
  [
    'an external metric above the target adds pods',
    { replicas: 3, values: ['8', '600m'], metrics: [external(value('6666m'))] },
    {
      desired: 4,
      conditions: [rescaled, active, within],
      events: [size(4, 'external metric qps(&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}) above target')],
      computed: ['External scale_up none'],
    },
  ],
  [
    'an external metric below the target removes pods',
    { replicas: 5, min: 2, values: ['8600m'], metrics: [external(average('3'))] },
    { desired: 3, conditions: [rescaled, active, within], events: [size(3, below)], computed: ['External scale_down none'] },
  ],
  [
    'CPU below the target removes pods',
    { replicas: 5, min: 2, usage: [100, 300, 500, 250, 250], metrics: [cpu(50)] },
    { desired: 3, conditions: [rescaled, active, within], events: [size(3, below)], computed: ['Resource scale_down none'] },
  ],
  [
    'a new autoscaler keeps the replicas that it finds for a while',
    { replicas: 5, min: 2, usage: [100, 300, 500, 250, 250], metrics: [cpu(50)], isNew: true },
    { desired: 5, conditions: ['AbleToScale True ScaleDownStabilized', active, within], events: [], computed: ['Resource scale_down none'] },
  ],
  [
    'a behavior limits the removal',
    { replicas: 5, usage: [100, 100, 100, 100, 100], metrics: [cpu(50)], behavior: removingOne() },
    { desired: 4, conditions: [rescaled, active, 'ScalingLimited True ScaleDownLimit'], events: [size(4, below)], computed: ['Resource scale_down none'] },
  ],
  [
    'usage within the tolerance changes nothing',
    { replicas: 3, usage: [1010, 1030, 1020], metrics: [cpu(100)] },
    { desired: 3, conditions: [unchanged, active, within], events: [], computed: ['Resource none none'] },
  ],
  [
    'an own tolerance of zero upward adds a pod',
    {
      replicas: 3,
      usage: [1010, 1030, 1020],
      metrics: [cpu(100)],
      behavior: { scaleUp: { tolerance: '0', policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }] } },
    },
    { desired: 4, conditions: [rescaled, active, within], events: [size(4, cpuReason)], computed: up },
  ],
  [
    'the minimum is kept',
    { replicas: 3, min: 2, usage: [10, 95, 10], metrics: [cpu(90)] },
    { desired: 2, conditions: [rescaled, active, tooFew], events: [size(2, below)], computed: ['Resource scale_down none'] },
  ],
  [
    'a minimum of zero is reached without usage',
    { replicas: 3, min: 0, usage: [0, 0, 0], metrics: [cpu(90)] },
    { desired: 0, conditions: [rescaled, active, within], events: [size(0, below)], computed: ['Resource scale_down none'] },
  ],
  [
    'the maximum is kept',
    { replicas: 3, max: 5, usage: [8000, 9500, 1000], metrics: [cpu(90)] },
    { desired: 5, conditions: [rescaled, active, tooMany], events: [size(5, cpuReason)], computed: up },
  ],
  [
    'the replicas double at most',
    { replicas: 3, usage: [8000, 9500, 9000], metrics: [cpu(10)] },
    { desired: 6, conditions: [rescaled, active, 'ScalingLimited True ScaleUpLimit'], events: [size(6, cpuReason)], computed: up },
  ],
  [
    'too few replicas are corrected without a metric',
    { replicas: 2, min: 3, metrics: [cpu(90)] },
    { desired: 3, conditions: [rescaled], events: [size(3, 'Current number of replicas below Spec.MinReplicas')], computed: [] },
  ],
  [
    'too many replicas are corrected without a metric',
    { replicas: 10, max: 5, metrics: [cpu(90)] },
    { desired: 5, conditions: [rescaled], events: [size(5, 'Current number of replicas above Spec.MaxReplicas')], computed: [] },
  ],
  ['a target that a user scaled to zero stays there', { replicas: 0, metrics: [cpu(50)] }, { desired: 0, conditions: disabled, events: [], computed: [] }],
  [
    'a target scaled to zero stays there without the gate',
    { replicas: 0, min: 0, values: ['20'], metrics: [ofObject(value('15'))], conditions: [scaledToZero] },
    { desired: 0, conditions: disabled, events: [], computed: [] },
  ],
  [
    'a target that a user scaled to zero stays there with the gate',
    { replicas: 0, min: 0, values: ['20'], metrics: [ofObject(value('15'))], scalesToZero: true },
    { desired: 0, conditions: disabled, events: [], computed: [] },
  ],
  [
    'a target that the autoscaler scaled to zero comes back',
    { replicas: 0, min: 0, values: ['20'], metrics: [ofObject(value('15'))], conditions: [scaledToZero], scalesToZero: true },
    { desired: 2, conditions: [...fromZero, within], events: [size(2, 'Deployment metric qps above target')], computed: ['Object scale_up none'] },
  ],
  [
    'the tolerance does not hold a target at zero',
    { replicas: 0, min: 0, values: ['1'], metrics: [ofObject(value('1'))], conditions: [scaledToZero], scalesToZero: true },
    { desired: 1, conditions: [...fromZero, within], events: [size(1, 'Deployment metric qps above target')], computed: ['Object scale_up none'] },
  ],
  [
    'a higher minimum ends the stay at zero',
    { replicas: 0, min: 2, values: ['10'], metrics: [ofObject(value('15'))], conditions: [scaledToZero], scalesToZero: true },
    { desired: 2, conditions: [...fromZero, tooFew], events: [size(2, 'Deployment metric qps above target')], computed: ['Object scale_up none'] },
  ],
  [
    'scaling to zero is remembered with the gate',
    { replicas: 5, min: 0, values: ['0'], metrics: [ofObject(value('20'))], scalesToZero: true },
    { desired: 0, conditions: [rescaled, active, within, 'ScaledToZero True ScaledToZero'], events: [size(0, below)], computed: ['Object scale_down none'] },
  ],
  [
    'scaling to zero is not remembered without the gate',
    { replicas: 5, min: 0, values: ['0'], metrics: [ofObject(value('20'))] },
    { desired: 0, conditions: [rescaled, active, within], events: [size(0, below)], computed: ['Object scale_down none'] },
  ],
  [
    'an old condition is removed without the gate',
    { replicas: 3, usage: [300, 500, 700], metrics: [cpu(30)], conditions: [scaledToZero] },
    { desired: 5, conditions: [rescaled, active, within], events: [size(5, cpuReason)], computed: up },
  ],
  [
    'measurements of pods that are not selected do not count',
    { replicas: 4, usage: [4000, 9500, 3000, 7000], metrics: [cpu(100)], max: 6 },
    { desired: 6, conditions: [rescaled, active, tooMany], events: [size(6, cpuReason)], computed: up },
  ],
  [
    'a conflict is tried again',
    { replicas: 3, usage: [300, 500, 700], metrics: [cpu(30)], fails: 'conflict' },
    { desired: 5, conditions: [rescaled, active, within], events: [size(5, cpuReason)], computed: up },
  ],
  [
    'one invalid metric does not prevent an addition',
    { replicas: 3, usage: [300, 400, 500], metrics: [cpu(30), cheese] },
    {
      desired: 4,
      conditions: [rescaled, active, within],
      events: ['Warning InvalidMetricSourceType unknown metric source type "CheddarCheese"', size(4, cpuReason)],
      computed: [...up, 'CheddarCheese none spec'],
      fault: 'internal: invalid metrics (1 invalid out of 2), first error is: unknown metric source type "CheddarCheese"',
    },
  ],
  [
    'one invalid metric prevents a removal',
    { replicas: 5, usage: [100, 300, 500, 250, 250], metrics: [cpu(50), cheese] },
    failure(5, 'InvalidMetricSourceType', 'unknown metric source type "CheddarCheese"', '(1 invalid out of 2)', [
      'Resource scale_down none',
      'CheddarCheese none spec',
    ]),
  ],
  [
    'one metric without values prevents a removal',
    { replicas: 5, usage: [100, 300, 500, 250, 250], metrics: [cpu(50), external(average('1'))] },
    failure(
      5,
      'FailedGetExternalMetric',
      `unable to get external metric n/qps/&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}: no metrics returned from external metrics API`,
      '(1 invalid out of 2)',
      ['Resource scale_down none', 'External none internal'],
      'failed to get qps external metric value: failed to get qps external metric: ',
    ),
  ],
  [
    'an unknown type alone is an error',
    { replicas: 3, metrics: [cheese] },
    failure(3, 'InvalidMetricSourceType', 'unknown metric source type "CheddarCheese"', '(1 invalid out of 1)', ['CheddarCheese none spec']),
  ],
  [
    'no measurements are an error',
    { replicas: 4, metrics: [cpu(100)] },
    failure(
      4,
      'FailedGetResourceMetric',
      'failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API',
      '(1 invalid out of 1)',
      ['Resource none internal'],
      'failed to get cpu resource metric value: ',
    ),
  ],
  [
    'a broken API of resource metrics is an error',
    { replicas: 3, metrics: [cpu(10)], fails: 'metrics' },
    failure(
      3,
      'FailedGetResourceMetric',
      'failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: something went wrong',
      '(1 invalid out of 1)',
      ['Resource none internal'],
      'failed to get cpu resource metric value: ',
    ),
  ],
  [
    'a broken API of custom metrics is an error for pods',
    { replicas: 3, metrics: [ofPods('15')], fails: 'metrics' },
    failure(
      3,
      'FailedGetPodsMetric',
      'unable to get metric qps: unable to fetch metrics from custom metrics API: something went wrong',
      '(1 invalid out of 1)',
      ['Pods none internal'],
      'failed to get pods metric value: ',
    ),
  ],
  [
    'a broken API of custom metrics is an error for an object',
    { replicas: 3, metrics: [ofObject(value('15'))], fails: 'metrics' },
    failure(
      3,
      'FailedGetObjectMetric',
      'unable to get metric qps: unable to fetch metrics from custom metrics API: something went wrong on Deployment n/other',
      '(1 invalid out of 1)',
      ['Object none internal'],
      'failed to get object metric value: ',
    ),
  ],
  [
    'several values for one object are an error',
    { replicas: 3, values: ['1', '2'], metrics: [ofObject(value('15'))] },
    failure(
      3,
      'FailedGetObjectMetric',
      'unable to get metric qps: unable to fetch metrics from custom metrics API: the custom metrics API server returned 2 results when we asked for exactly one on Deployment n/other',
      '(1 invalid out of 1)',
      ['Object none internal'],
      'failed to get object metric value: ',
    ),
  ],
  [
    'a value that is no quantity is an error',
    { replicas: 3, values: ['NaN', '1', '1'], metrics: [ofPods('15')] },
    failure(
      3,
      'FailedGetPodsMetric',
      "unable to get metric qps: unable to fetch metrics from custom metrics API: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
      '(1 invalid out of 1)',
      ['Pods none internal'],
      'failed to get pods metric value: ',
    ),
  ],
  [
    'a huge value ends at the maximum',
    {
      replicas: 3,
      values: ['1e300', '1e300'],
      metrics: [external(value('1m'))],
      behavior: { scaleUp: { policies: [{ type: 'Percent', value: 1e9, periodSeconds: 15 }] } },
    },
    {
      desired: 100,
      conditions: [rescaled, active, tooMany],
      events: [size(100, 'external metric qps(&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}) above target')],
      computed: ['External scale_up none'],
    },
  ],
  [
    'a scale without a selector is an error',
    { replicas: 3, usage: [100, 200, 300], metrics: [cpu(10)], selector: '' },
    {
      desired: 3,
      conditions: stopped('InvalidSelector'),
      events: ['Warning SelectorRequired selector is required', 'Warning FailedComputeMetricsReplicas selector is required'],
      computed: [],
      fault: `${failedTo}selector is required`,
    },
  ],
  [
    'two autoscalers of the same pods do not scale them',
    { replicas: 3, usage: [100, 200, 300], metrics: [cpu(10)], other: 'app in (web, db)' },
    ambiguous('pods by selector app=web are controlled by multiple HPAs: [n/h n/other]'),
  ],
  [
    'an autoscaler of other pods does not matter',
    { replicas: 3, usage: [300, 500, 700], metrics: [cpu(30)], other: 'app=db' },
    { desired: 5, conditions: [rescaled, active, within], events: [size(5, cpuReason)], computed: up },
  ],
  [
    'a target that is not there is an error',
    { replicas: 3, metrics: [cpu(10)], fails: 'get' },
    {
      desired: 3,
      conditions: ['AbleToScale False FailedGetScale'],
      events: ['Warning FailedGetScale deployments.apps "d" not found'],
      computed: [],
      fault: 'internal: failed to query scale subresource for Deployment/n/d: deployments.apps "d" not found',
    },
  ],
  [
    'a scale that cannot be written is an error',
    { replicas: 3, max: 5, usage: [1500, 1500, 1500], metrics: [cpu(100)], fails: 'update' },
    {
      desired: 3,
      conditions: ['AbleToScale False FailedUpdateScale', active, within],
      events: [`Warning FailedRescale New size: 5; reason: ${cpuReason}; error: something went wrong`],
      computed: up,
      fault: 'internal: failed to rescale Deployment/n/d: something went wrong',
    },
  ],
]
for (const [name, setting, want] of cases)
  test(`AUT-01 a sync: ${name}`, async () => {
    const { scaledTo, ...outcome } = await syncOnce(setting)
    assert.deepEqual(outcome, want)
    const isScaled = want.desired !== setting.replicas
    assert.deepEqual(scaledTo, isScaled ? Array(setting.fails === 'conflict' ? 2 : 1).fill(want.desired) : [])
  })

function removingOne() {
  const rules = { stabilizationWindowSeconds: 0, selectPolicy: 'Max', policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] }
  return { scaleUp: rules, scaleDown: rules }
}

function failure(desired: number, reason: string, message: string, count: string, computed: readonly string[], prefix = ''): SyncOutcome {
  const summary = `invalid metrics ${count}, first error is: ${prefix}${message}`
  const events = [`Warning ${reason} ${message}`, `Warning FailedComputeMetricsReplicas ${summary}`]
  return { desired, conditions: stopped(reason), events, computed, fault: `${failedTo}${summary}` }
}

function ambiguous(message: string): SyncOutcome {
  const events = [`Warning AmbiguousSelector ${message}`, `Warning FailedComputeMetricsReplicas ${message}`]
  return { desired: 3, conditions: stopped('AmbiguousSelector'), events, computed: [], fault: `${failedTo}${message}` }
}
