/** What the controllers tell of themselves, under upstream's names. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobs, nodes, persistentVolumeClaims, persistentVolumes, pods } from '#client/builtIn'
import { createPrometheusMetrics } from '#main/prometheus'
import { eventually, startTestCluster } from './cluster.ts'

const namespace = 'default'

test('OBS-08 CTL-01 jobs, volumes, taints and queues are counted as upstream counts them', async () => {
  const metrics = createPrometheusMetrics()
  const cluster = await startTestCluster({ metrics, podsRun: false, rootCa: 'PEM', volumeBinding: { syncPeriodMs: 100 } })
  const { client } = cluster
  const untilTold = (series: string, value: number) =>
    eventually(async () => {
      const line = metrics
        .render()
        .split('\n')
        .find((one) => one.startsWith(`${series} `))
      assert.equal(line?.slice(series.length + 1), String(value), series)
      return true
    })
  try {
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'a' }] } }
    await client.of(jobs).create({ metadata: { namespace, name: 'once' }, spec: { template, ttlSecondsAfterFinished: 0 } })
    const [pod] = await eventually(async () => {
      const { items } = await client.of(pods).list({ namespace })
      return items.length > 0 && items
    })
    assert.ok(pod)
    await client.of(pods).patch({ namespace, name: pod.metadata.name ?? '' }, 'merge', { status: { phase: 'Succeeded' } }, { subresource: 'status' })
    await untilTold('job_controller_jobs_finished_total{completion_mode="NonIndexed",result="succeeded",reason="CompletionsReached"}', 1)
    await untilTold('job_controller_job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"}', 1)
    await untilTold('job_controller_job_pods_creation_total{reason="new",status="succeeded"}', 1)
    await untilTold('job_controller_terminated_pods_tracking_finalizer_total{event="add"}', 1)
    await untilTold('job_controller_job_syncs_total{completion_mode="NonIndexed",result="success",action="pods_created"}', 1)
    await untilTold('ttl_after_finished_controller_job_deletion_duration_seconds_count', 1)

    const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'shelf' }
    await client.of(persistentVolumes).create({ metadata: { name: 'v' }, spec: { ...spec, capacity: { storage: '1Gi' }, hostPath: { path: '/v' } } })
    await untilTold('pv_collector_unbound_pv_count{storage_class="shelf"}', 1)
    await client.of(persistentVolumeClaims).create({ metadata: { namespace, name: 'c' }, spec: { ...spec, resources: { requests: { storage: '1Gi' } } } })
    await untilTold('pv_collector_bound_pvc_count{namespace="default",storage_class="shelf",volume_attributes_class=""}', 1)
    await untilTold('pv_collector_bound_pv_count{storage_class="shelf"}', 1)
    await untilTold('pv_collector_unbound_pv_count{storage_class="shelf"}', 0)
    await untilTold('pv_collector_total_pv_count{plugin_name="kubernetes.io/host-path",volume_mode="Filesystem"}', 1)

    await client.of(nodes).create({ metadata: { name: 'n' }, spec: {} })
    await client.of(pods).create({ metadata: { namespace, name: 'p' }, spec: { nodeName: 'n', containers: [{ name: 'c', image: 'a' }] } })
    const taints = [{ key: 'example.com/away', effect: 'NoExecute' }]
    await client.of(nodes).patch({ name: 'n' }, 'merge', { spec: { taints } })
    await untilTold('taint_eviction_controller_pod_deletions_total', 1)
    const text = metrics.render()
    for (const name of [
      'node_collector_update_all_nodes_health_duration_seconds_count',
      'root_ca_cert_publisher_sync_total{code="200"}',
      'workqueue_adds_total{name="claims"}',
      'workqueue_adds_total{name="job"}',
    ])
      assert.ok(text.includes(`\n${name} `), name)
  } finally {
    await cluster.close()
  }
})
