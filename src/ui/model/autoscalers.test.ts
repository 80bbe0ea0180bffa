import assert from 'node:assert/strict'
import { test } from 'node:test'
import { autoscalerRow } from './autoscalers.ts'

const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }

test('ARC-16 an autoscaler shows its replicas between their bounds, and each metric against its target', () => {
  const row = autoscalerRow({
    metadata: { namespace: 'a', name: 'web' },
    spec: {
      scaleTargetRef,
      minReplicas: 2,
      maxReplicas: 9,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
        { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '100Mi' } } },
        { type: 'Pods', pods: { metric: { name: 'rps' }, target: { type: 'AverageValue', averageValue: '10' } } },
        { type: 'External', external: { metric: { name: 'queue' }, target: { type: 'Value', value: '5' } } },
      ],
    },
    status: {
      currentReplicas: 3,
      desiredReplicas: 4,
      currentMetrics: [
        { type: 'Resource', resource: { name: 'memory', current: { averageValue: '90Mi' } } },
        { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 45, averageValue: '45m' } } },
        { type: 'External', external: { metric: { name: 'queue' }, current: { value: '7' } } },
      ],
    },
  })
  assert.deepEqual(row, {
    ...{ namespace: 'a', name: 'web', target: 'Deployment web', least: 2, most: 9, current: 3, desired: 4 },
    metrics: ['cpu 45% of 80%', 'memory 90Mi of 100Mi', 'rps unknown of 10', 'queue 7 of 5'],
  })
})

test('ARC-16 an autoscaler without a status has no replicas yet', () => {
  const { least, current, metrics } = autoscalerRow({ metadata: {}, spec: { scaleTargetRef, maxReplicas: 3 } })
  assert.deepEqual([least, current, metrics], [1, 0, []])
})
