import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodStatus } from '#api/gen/types/core.v1'
import type { Metrics } from '#base/metrics'
import { formatTime } from '#base/time'
import { VirtualClock } from '#base/virtualClock'
import type { PodSandbox, RuntimeContainer } from '#grpc/criTypes'
import { createPodGauges } from './podGauges.ts'
import { createPodMetrics } from './podMetrics.ts'

/** Writes down what is observed, set and counted. */
function recording(): { metrics: Metrics; lines: string[] } {
  const lines: string[] = []
  const note =
    (name: string) =>
    (value: number | object, labels: object = {}) =>
      void lines.push(typeof value === 'number' ? `${name} ${Object.values(labels).join(',')} ${value}` : `${name} ${Object.values(value).join(',')}`)
  const family = ({ name }: { name: string }) => ({ inc: note(name), set: note(name), observe: note(name), dec: note(name), series: () => family({ name }) })
  return { metrics: { counter: family, gauge: family, histogram: family, summary: family } as unknown as Metrics, lines }
}

const clock = () => new VirtualClock('2026-01-01T00:01:00Z')
const at = (seconds: number) => formatTime(Date.parse('2026-01-01T00:00:00Z') + seconds * 1000)
const pod = (more: Partial<Pod['spec']> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', uid: 'u', creationTimestamp: at(0) },
  spec: { containers: [{ name: 'c' }], ...more },
  status: {},
})
const running: PodStatus = {
  phase: 'Running',
  containerStatuses: [{ name: 'c', image: '', imageID: '', ready: false, restartCount: 0, state: { running: {} } }],
}

test('OBS-09 the start of a pod is measured from its creation until its status is reported, with and without images and init containers', () => {
  const { metrics, lines } = recording()
  const { starts } = createPodMetrics(metrics, clock())
  starts.seen(pod())
  starts.pulled('u', 1000, 3000)
  starts.pulled('u', 4000, 11_000)
  starts.reported(pod(), { ...running, containerStatuses: [{ name: 'c', image: '', imageID: '', ready: false, restartCount: 0, state: { waiting: {} } }] })
  assert.deepEqual(lines, [], 'not yet')
  const ended = (from: number, to: number) => ({ terminated: { exitCode: 0, startedAt: at(from), finishedAt: at(to) } })
  const init = [ended(10, 15), ended(20, 30)].map((state, index) => ({ name: `${index}`, image: '', imageID: '', ready: true, restartCount: 0, state }))
  starts.reported(pod(), { ...running, initContainerStatuses: init })
  starts.reported(pod(), running)
  assert.deepEqual(lines, [
    'kubelet_pod_start_total_duration_seconds  60',
    'kubelet_pod_start_sli_duration_seconds  30',
    'kubelet_first_network_pod_start_sli_duration_seconds  30',
  ])
})

test('OBS-09 pods that ran before this kubelet, and those that are over before they were seen to run, are no starts', () => {
  const { metrics, lines } = recording()
  const { starts } = createPodMetrics(metrics, clock())
  starts.seen({ ...pod(), status: { startTime: at(0) } })
  starts.reported(pod(), running)
  starts.seen(pod())
  starts.reported(pod(), { phase: 'Failed' })
  starts.seen(pod())
  starts.forget('u')
  starts.reported(pod(), running)
  assert.deepEqual(lines, [])
})

test('OBS-09 gauges report the runtime’s pods and the workers’ pods', () => {
  const { metrics, lines } = recording()
  const gauges = createPodGauges(metrics)
  gauges.runtime([{ state: 'SANDBOX_READY' }, { state: 'SANDBOX_NOTREADY' }] as PodSandbox[], [{ state: 'CONTAINER_RUNNING' }] as RuntimeContainer[])
  const fromFile: Pod = { ...pod(), metadata: { annotations: { 'kubernetes.io/config.source': 'file' } } }
  gauges.workers([
    { pod: pod(), lifecycle: 'sync', orphan: false },
    { pod: pod(), lifecycle: 'terminating', orphan: true },
    { pod: fromFile, lifecycle: 'sync', orphan: false },
  ])
  for (const line of [
    'kubelet_running_pods  1',
    'kubelet_running_containers running 1',
    'kubelet_running_containers exited 0',
    'kubelet_desired_pods  1',
    'kubelet_desired_pods true 1',
    'kubelet_active_pods  2',
    'kubelet_mirror_pods  1',
    'kubelet_working_pods sync,desired, 1',
    'kubelet_working_pods terminating,orphan, 1',
    'kubelet_working_pods sync,desired,true 1',
  ]) {
    assert.ok(lines.includes(line), line)
  }
})
