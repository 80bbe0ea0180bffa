/** The controllers' metrics, under upstream's names. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodStatus } from '#api/gen/types/core.v1'
import { cronJobs, endpoints, jobs, nodes, persistentVolumeClaims, persistentVolumes, pods, replicaSets, services } from '#client/builtIn'
import { createPrometheusMetrics, type PrometheusMetrics } from '#main/prometheus'
import { eventually, startTestCluster } from './cluster.ts'

const namespace = 'default'

/** Waits until a series has the wanted value. */
const teller = (metrics: PrometheusMetrics) => (series: string, value: number) =>
  eventually(async () => {
    const line = metrics
      .render()
      .split('\n')
      .find((one) => one.startsWith(`${series} `))
    assert.equal(line?.slice(series.length + 1), String(value), series)
    return true
  })

test('OBS-08 CTL-01 jobs, volumes, taints and queues are counted as upstream counts them', async () => {
  const metrics = createPrometheusMetrics()
  const cluster = await startTestCluster({ metrics, podsRun: false, rootCa: 'PEM', volumeBinding: { syncPeriodMs: 100 } })
  const { client } = cluster
  const untilTold = teller(metrics)
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
      'workqueue_adds_total{name="cidrallocator_node"}',
      'workqueue_adds_total{name="claims"}',
      'workqueue_adds_total{name="job"}',
    ])
      assert.ok(text.includes(`\n${name} `), name)
  } finally {
    await cluster.close()
  }
})

test('OBS-08 CTL-12 slices, node ranges and scaling down are counted as upstream counts them', async () => {
  const metrics = createPrometheusMetrics()
  const cluster = await startTestCluster({ metrics, clusterCidr: '10.8.0.0/22', nodeCidrMaskSize: 24 })
  const { client } = cluster
  const untilTold = teller(metrics)
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'a' }] } }
  try {
    await untilTold('running_managed_controllers{name="job-controller",manager="kube-controller-manager"}', 1)
    await client.of(nodes).create({ metadata: { name: 'n' }, spec: {} })
    await untilTold('node_ipam_controller_cidrset_cidrs_allocations_total{clusterCIDR="10.8.0.0/22"}', 1)
    await untilTold('node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.8.0.0/22"}', 0.25)
    await untilTold('node_ipam_controller_cirdset_max_cidrs{clusterCIDR="10.8.0.0/22"}', 4)
    await untilTold('node_ipam_controller_cidrset_allocation_tries_per_request_count{clusterCIDR="10.8.0.0/22"}', 1)
    await client.of(nodes).delete({ name: 'n' })
    await untilTold('node_ipam_controller_cidrset_cidrs_releases_total{clusterCIDR="10.8.0.0/22"}', 1)

    const spec = { ports: [{ port: 80 }], trafficDistribution: 'PreferClose' }
    await client.of(services).create({ metadata: { namespace, name: 'web' }, spec: { ...spec, selector: { app: 'web' } } })
    await untilTold('endpoint_slice_controller_services_count_by_traffic_distribution{traffic_distribution="PreferClose"}', 1)
    await untilTold('endpoint_slice_controller_changes{operation="create"}', 1)
    await client.of(replicaSets).create({ metadata: { namespace, name: 'web' }, spec: { replicas: 3, selector: { matchLabels: { app: 'web' } }, template } })
    await untilTold('endpoint_slice_controller_endpoints_desired', 3)
    await untilTold('endpoint_slice_controller_endpoints_added_per_sync_sum', 3)
    await untilTold('endpoint_slice_controller_desired_endpoint_slices', 1)
    await untilTold('endpoint_slice_controller_num_endpoint_slices', 1)
    await eventually(async () => (await client.of(replicaSets).get({ namespace, name: 'web' })).status?.readyReplicas === 3)
    await client.of(replicaSets).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 1 } })
    await untilTold('replicaset_controller_sorting_deletion_age_ratio_count', 2)
    await untilTold('endpoint_slice_controller_endpoints_removed_per_sync_sum', 2)
    await client.of(services).delete({ namespace, name: 'web' })
    await untilTold('endpoint_slice_controller_endpoints_desired', 0)
    await untilTold('endpoint_slice_controller_services_count_by_traffic_distribution{traffic_distribution="PreferClose"}', 0)

    await client.of(services).create({ metadata: { namespace, name: 'hand' }, spec: { ports: [{ port: 80 }] } })
    const subsets = [{ addresses: [{ ip: '10.1.0.1' }, { ip: '10.1.0.2' }], ports: [{ port: 80 }] }]
    await client.of(endpoints).create({ metadata: { namespace, name: 'hand' }, subsets })
    await untilTold('endpoint_slice_mirroring_controller_changes{operation="create"}', 1)
    await untilTold('endpoint_slice_mirroring_controller_endpoints_added_per_sync_sum', 2)
    await untilTold('endpoint_slice_mirroring_controller_endpoints_desired', 2)
    await untilTold('endpoint_slice_mirroring_controller_addresses_skipped_per_sync_sum', 0)
  } finally {
    await cluster.close()
  }
})

test('OBS-08 CTL-07 CTL-08 late cron jobs, indexes and failures with a policy are counted as upstream counts them', async () => {
  const metrics = createPrometheusMetrics()
  const cluster = await startTestCluster({ metrics, podsRun: false })
  const { client } = cluster
  const untilTold = teller(metrics)
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'a' }] } }
  const finishPodOf = async (job: string, status: PodStatus) => {
    const [pod] = await eventually(async () => {
      const { items } = await client.of(pods).list({ namespace, labelSelector: `job-name=${job}` })
      return items.length > 0 && items
    })
    await client.of(pods).patch({ namespace, name: pod?.metadata.name ?? '' }, 'merge', { status }, { subresource: 'status' })
  }
  try {
    await client.of(cronJobs).create({ metadata: { namespace, name: 'yearly' }, spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: { template } } } })
    const status = { lastScheduleTime: '2020-06-01T00:00:00Z' }
    await client.of(cronJobs).patch({ namespace, name: 'yearly' }, 'merge', { status }, { subresource: 'status' })
    await untilTold('cronjob_controller_job_creation_skew_duration_seconds_count', 1)

    await client.of(jobs).create({ metadata: { namespace, name: 'one' }, spec: { completionMode: 'Indexed', completions: 1, parallelism: 1, template } })
    await finishPodOf('one', { phase: 'Succeeded' })
    await untilTold('job_controller_job_finished_indexes_total{status="succeeded",backoffLimit="global"}', 1)

    const podFailurePolicy = { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] }
    await client.of(jobs).create({ metadata: { namespace, name: 'gone' }, spec: { podFailurePolicy, template } })
    await finishPodOf('gone', { phase: 'Failed', conditions: [{ type: 'DisruptionTarget', status: 'True' }] })
    await untilTold('job_controller_pod_failures_handled_by_failure_policy_total{action="Ignore"}', 1)
  } finally {
    await cluster.close()
  }
})
