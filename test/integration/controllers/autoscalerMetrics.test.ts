/** The metrics of the autoscaler's controller, under upstream's names. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { deployments, horizontalPodAutoscalers } from '#client/builtIn'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

const namespace = 'default'
const metrics = createRecordedMetrics()
let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster({ controllers: ['horizontal-pod-autoscaler-controller'], metrics, podsRun: false, autoscaler: { syncPeriodMs: 20 } })
})
after(() => cluster.close())

const recorded = (name: string, labels = '') => metrics.values.get(`horizontal_pod_autoscaler_controller_${name}${labels}`)
const ofAutoscaler = '{hpa_name="web",namespace="default"}'

test('AUT-01 /metrics counts syncs by outcome and shows the replicas of each autoscaler until it is deleted', async () => {
  const { client } = cluster
  const autoscalers = client.of(horizontalPodAutoscalers)
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'a:1' }] } }
  await client.of(deployments).create({ metadata: { namespace, name: 'web' }, spec: { replicas: 1, selector: { matchLabels: { app: 'web' } }, template } })
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
  await autoscalers.create({ metadata: { namespace, name: 'web' }, spec: { minReplicas: 2, maxReplicas: 3, scaleTargetRef } })
  await eventually(async () => recorded('reconciliations_total', '{action="scale_up",error="none"}') === 1)
  assert.equal(recorded('reconciliation_duration_seconds', '{action="scale_up",error="none"}'), 1)
  assert.equal(recorded('desired_replicas', ofAutoscaler), 2)
  assert.equal(recorded('num_horizontal_pod_autoscalers'), 1)
  // Two replicas are enough, so the metric is computed, and no server has it.
  const failed = '{action="none",error="internal",metric_type="Resource"}'
  await eventually(async () => (recorded('metric_computation_total', failed) ?? 0) > 1 && (recorded('metric_computation_duration_seconds', failed) ?? 0) > 1)
  await eventually(async () => (recorded('reconciliations_total', '{action="none",error="internal"}') ?? 0) > 1)
  await autoscalers.delete({ namespace, name: 'web' })
  await eventually(async () => recorded('num_horizontal_pod_autoscalers') === 0 && recorded('desired_replicas', ofAutoscaler) === undefined)
})
