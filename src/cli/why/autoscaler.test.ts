import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeAutoscaler, explainAutoscaler } from './autoscaler.ts'

const target = { type: 'Utilization', averageUtilization: 50 }
const autoscaler = {
  spec: {
    minReplicas: 1,
    maxReplicas: 10,
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
    metrics: [
      { type: 'Resource', resource: { name: 'cpu', target } },
      { type: 'ContainerResource', containerResource: { name: 'memory', container: 'c', target: { type: 'AverageValue', averageValue: '100Mi' } } },
      { type: 'External', external: { metric: { name: 'queue' }, target: { type: 'Value', value: '30' } } },
      { type: 'Object', object: { metric: { name: 'qps' }, describedObject: { kind: 'Ingress', name: 'i' }, target: { type: 'Value', value: '2k' } } },
    ],
    behavior: { scaleUp: { tolerance: '50m' } },
  },
  status: {
    currentReplicas: 3,
    desiredReplicas: 5,
    lastScaleTime: '2026-01-01T00:00:15Z',
    currentMetrics: [
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 75, averageValue: '75m' } } },
      { type: 'ContainerResource', containerResource: { name: 'memory', container: 'c', current: { averageValue: '50Mi' } } },
      { type: '' },
      { type: 'Object', object: { current: { value: '2k' } } },
    ],
    conditions: [{ type: 'AbleToScale', status: 'True', reason: 'SucceededRescale', message: 'the size was set' }],
  },
}
const ready = { metadata: {}, status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }
const answers: Readonly<Record<string, unknown>> = {
  '/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers/web': autoscaler,
  '/apis/apps/v1': {
    resources: [
      { name: 'deployments/scale', kind: 'Scale' },
      { name: 'deployments', kind: 'Deployment' },
    ],
  },
  '/apis/apps/v1/namespaces/n/deployments/web/scale': { status: { replicas: 3, selector: 'app=web' } },
  '/api/v1/namespaces/n/pods?labelSelector=app%3Dweb': { items: [ready, ready, { metadata: {}, status: { phase: 'Pending' } }] },
}
const ask = (known: typeof answers) => async (path: string) =>
  known[path] === undefined ? { status: 404, body: '{}' } : { status: 200, body: JSON.stringify(known[path]) }

test('AUT-01 skiff why prints the sum of each metric, and what became of it', async () => {
  assert.equal(
    describeAutoscaler(await explainAutoscaler(ask(answers), 'n', 'web')),
    [
      'autoscaler:   n/web',
      'target:       Deployment/web',
      'range:        1 to 10',
      'replicas:     3, set to 5; last changed 2026-01-01T00:00:15Z',
      '',
      'METRIC                  CURRENT   TARGET   RATIO   REPLICAS',
      'cpu                     75%       50%      1.5     3 x 1.5 = 5',
      'memory of container c   50Mi      100Mi    0.5     3 x 0.5 = 2',
      'queue (external)        unknown   30       -       -',
      'qps of Ingress/i        2k        2k       1       3 x 1 = 3',
      'The largest number counts. A ratio from 0.9 to 1.05 changes nothing.',
      'Now 1 of 3 pods is not ready: for CPU such pods count as idle while the others ask for more, and do not count otherwise.',
      '',
      'AbleToScale True: SucceededRescale: the size was set',
      '',
    ].join('\n'),
  )
})

test('AUT-01 skiff why explains an autoscaler without a target and without a status', async () => {
  const bare = { '/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers/web': { spec: autoscaler.spec } }
  const found = await explainAutoscaler(ask(bare), 'n', 'web')
  assert.deepEqual([found.pods, found.currentReplicas, found.metrics.map(({ replicas }) => replicas)], [undefined, 0, Array(4).fill(undefined)])
})
