/** The scheduler's metrics, under upstream's names. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { nodes, pods } from '#client/builtIn'
import { createPrometheusMetrics } from '#main/prometheus'
import { startTestApiServer } from '#testing/apiServer'
import { addNode, isBound, isUnschedulable, newNode, newPod, startScheduler, untilPods } from './cluster.ts'

test('OBS-08 attempts, queues, extension points and who refused are counted as upstream counts them', async () => {
  const api = await startTestApiServer()
  const metrics = createPrometheusMetrics()
  for (const name of ['a', 'b']) await addNode(api.client, newNode(name, { cpu: '1', memory: '1Gi', pods: '10' }))
  const scheduler = startScheduler(api.client, {}, metrics)
  try {
    await api.client.of(pods).create(newPod('small'))
    await untilPods(api.client, ['small'], isBound)
    await api.client.of(pods).create(newPod('big', '2'))
    await untilPods(api.client, ['big'], isUnschedulable)
    const waiting = 'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} '
    assert.equal(seriesValue(metrics.render(), waiting), 1)
    await api.client.of(nodes).patch({ name: 'a' }, 'merge', { status: { allocatable: { cpu: '4' } } }, { subresource: 'status' })
    await untilPods(api.client, ['big'], isBound)
    await scheduler.stop()
    const text = metrics.render()
    const expected: [string, number][] = [
      ['scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"} ', 2],
      ['scheduler_schedule_attempts_total{result="unschedulable",profile="default-scheduler"} ', 1],
      ['scheduler_queue_incoming_pods_total{queue="active",event="UnschedulablePodAdd"} ', 2],
      ['scheduler_queue_incoming_pods_total{queue="unschedulable",event="ScheduleAttemptFailure"} ', 1],
      ['scheduler_framework_extension_point_duration_seconds_count{extension_point="Filter",status="Success",profile="default-scheduler"} ', 2],
      ['scheduler_framework_extension_point_duration_seconds_count{extension_point="Filter",status="Unschedulable",profile="default-scheduler"} ', 1],
      ['scheduler_framework_extension_point_duration_seconds_count{extension_point="Bind",status="Success",profile="default-scheduler"} ', 2],
      ['scheduler_preemption_attempts_total ', 1],
      ['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="2"} ', 1],
      ['scheduler_pending_pods{queue="unschedulable"} ', 0],
      ['scheduler_cache_size{type="nodes"} ', 2],
      ['scheduler_goroutines{operation="binding"} ', 0],
      // Twice two nodes, and both again for the pod that nothing was big enough for at first.
      ['scheduler_plugin_evaluation_total{plugin="NodeResourcesFit",extension_point="Filter",profile="default-scheduler"} ', 6],
      // Scores count only where two nodes were left.
      ['scheduler_plugin_evaluation_total{plugin="TaintToleration",extension_point="PreScore",profile="default-scheduler"} ', 1],
      ['scheduler_plugin_evaluation_total{plugin="TaintToleration",extension_point="Score",profile="default-scheduler"} ', 2],
      // The first of ten cycles is timed plugin by plugin, of its two nodes the first; its binding belongs to it.
      ['scheduler_plugin_execution_duration_seconds_count{plugin="NodeResourcesFit",extension_point="Filter",status="Success"} ', 1],
      ['scheduler_plugin_execution_duration_seconds_count{plugin="TaintToleration",extension_point="Score",status="Success"} ', 1],
      ['scheduler_plugin_execution_duration_seconds_count{plugin="TaintToleration",extension_point="ScoreExtensionNormalize",status="Success"} ', 1],
      ['scheduler_plugin_execution_duration_seconds_count{plugin="TaintToleration",extension_point="PreScore",status="Success"} ', 1],
      ['scheduler_plugin_execution_duration_seconds_count{plugin="DefaultBinder",extension_point="Bind",status="Success"} ', 1],
      ['scheduler_event_handling_duration_seconds_count{event="UnschedulablePodAdd"} ', 2],
      ['scheduler_event_handling_duration_seconds_count{event="NodeAdd"} ', 2],
      ['scheduler_event_handling_duration_seconds_count{event="NodeUpdateNodeAllocatable"} ', 1],
      ['scheduler_queueing_hint_execution_duration_seconds_count{plugin="NodeResourcesFit",event="NodeUpdateNodeAllocatable",hint="Queue"} ', 1],
      ['scheduler_inflight_events{event="PodPopped"} ', 0],
      ['scheduler_pod_scheduled_after_flush_total ', 0],
      // Pods that are spread by default are like no others; for the third decision one node was left, so there was no ranking.
      ['scheduler_batch_attempts_total{profile="default-scheduler",result="no_hint"} ', 3],
      ['scheduler_batch_cache_flushed_total{profile="default-scheduler",reason="pod_not_batchable"} ', 1],
      ['scheduler_batch_cache_flushed_total{profile="default-scheduler",reason="empty_list"} ', 1],
      ['scheduler_get_node_hint_duration_seconds_count{hinted="no_hint",profile="default-scheduler"} ', 3],
      ['scheduler_store_schedule_results_duration_seconds_count{profile="default-scheduler"} ', 2],
      [waiting, 0],
    ]
    for (const [series, value] of expected) assert.equal(seriesValue(text, series), value, `${series}\n${text}`)
  } finally {
    await scheduler.stop()
    await api.close()
  }
})

test('OBS-08 pods and nodes are counted although nothing is being scheduled, and evictions when they have ended', async () => {
  const api = await startTestApiServer()
  const metrics = createPrometheusMetrics()
  const scheduler = startScheduler(api.client, {}, metrics)
  const signal = AbortSignal.timeout(60_000)
  const becomes = async (series: string, value: number) => {
    while (seriesValue(metrics.render(), series) !== value) await setImmediate(undefined, { signal })
  }
  try {
    await addNode(api.client, newNode('a', { cpu: '1', memory: '1Gi', pods: '10' }))
    await becomes('scheduler_cache_size{type="nodes"} ', 1)
    await api.client.of(pods).create(newPod('gated', '100m', { schedulingGates: [{ name: 'example.com/wait' }] }))
    await becomes('scheduler_pending_pods{queue="gated"} ', 1)
    await api.client.of(pods).delete({ namespace: 'default', name: 'gated' }, { gracePeriodSeconds: 0 })
    await becomes('scheduler_pending_pods{queue="gated"} ', 0)
    await becomes('scheduler_event_handling_duration_seconds_count{event="UnschedulablePodDelete"} ', 1)
    await api.client.of(pods).create(newPod('low', '800m', { priority: 1, terminationGracePeriodSeconds: 0 }))
    await untilPods(api.client, ['low'], isBound)
    await becomes('scheduler_cache_size{type="assumed_pods"} ', 0)
    assert.equal(seriesValue(metrics.render(), 'scheduler_cache_size{type="pods"} '), 1)
    await api.client.of(pods).create(newPod('high', '800m', { priority: 10 }))
    await untilPods(api.client, ['high'], isBound)
    await becomes('scheduler_preemption_goroutines_execution_total{result="success"} ', 1)
    await becomes('scheduler_preemption_goroutines_duration_seconds_count{result="success"} ', 1)
  } finally {
    await scheduler.stop()
    await api.close()
  }
})

function seriesValue(text: string, series: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(series))
  return line === undefined ? undefined : Number(line.slice(series.length))
}
