import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event, Node, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createClient } from '#client/clientOverTransport'
import { createKubelet } from '#kubelet/kubelet'
import { defaultProfile } from '#kubelet/runtime/simulated/profile'
import { createSimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { createPrometheusMetrics } from '#main/prometheus'
import { simulatedMachine } from '../support/simulatedMachine.ts'
import { KubeletApi } from './kubeletApi.ts'

interface Tools {
  readonly api: KubeletApi
  readonly clock: VirtualClock
  resize(name: string, cpu: string): void
  /** The lines of /metrics about resizes, without those that are zero. */
  metrics(): string[]
  status(name: string): Frozen<Pod>['status'] | undefined
}

/** A simulated node of 4 CPUs in virtual time. */
async function withKubelet(run: (tools: Tools) => Promise<void>): Promise<void> {
  const clock = new VirtualClock()
  const api = new KubeletApi(() => clock.now())
  const random = seededRandom(7)
  const runtime = createSimulatedRuntime({ clock, random, profile: defaultProfile, podCidr: '10.244.0.0/24' })
  const metrics = createPrometheusMetrics()
  const deps = { client: createClient(api), clock, random, log: noLog, metrics, runtime, machine: simulatedMachine }
  const stop = new AbortController()
  const running = createKubelet(deps, { nodeName: 'sim-1', nodeIPs: ['192.0.2.1'] }).run(stop.signal)
  try {
    await clock.advance(1_000)
    await run({
      api,
      clock,
      metrics: () =>
        metrics
          .render()
          .split('\n')
          .filter((line) => /^kubelet_.*resizes/.test(line) && !line.endsWith(' 0'))
          .sort(),
      status: (name) => api.get<Pod>('pods', 'default', name)?.status,
      resize: (name, cpu) => {
        const pod = deepCopy<Pod>(api.get<Pod>('pods', 'default', name) as Frozen<Pod>)
        for (const container of pod.spec.containers) container.resources = { requests: { cpu } }
        api.put('pods', { ...pod, metadata: { ...pod.metadata, generation: (pod.metadata.generation ?? 0) + 1 } })
      },
    })
  } finally {
    stop.abort()
    await clock.advance(1_000)
    await running
  }
}

function pod(name: string, cpu: string, priority = 0): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', generation: 1 },
    spec: { nodeName: 'sim-1', priority, containers: [{ name: 'main', image: 'example.com/app:1', resources: { requests: { cpu } } }] },
    status: { phase: 'Pending', qosClass: 'Burstable' },
  }
}

const pendingOf = (status: Frozen<Pod>['status'] | undefined) => status?.conditions?.find(({ type }) => type === 'PodResizePending')
const cpuOf = (status: Frozen<Pod>['status'] | undefined) => status?.containerStatuses?.[0]?.resources?.requests?.cpu

test('KUB-22 resizes that wait for room are served when a pod goes, the more important one first', () =>
  withKubelet(async ({ api, clock, resize, status, metrics }) => {
    for (const [name, cpu, priority] of [
      ['leaving', '2', 0],
      ['humble', '500m', 0],
      ['important', '500m', 100],
    ] as const) {
      api.put('pods', pod(name, cpu, priority))
    }
    await clock.advance(5_000)
    resize('humble', '2500m')
    await clock.advance(1_000)
    resize('important', '2500m')
    await clock.advance(1_000)
    const message = "Node didn't have enough resource: cpu, requested: 2500, used: 2500, capacity: 4000"
    for (const name of ['humble', 'important']) {
      const { reason, message: said } = pendingOf(status(name)) ?? {}
      assert.deepEqual([reason, said, cpuOf(status(name))], ['Deferred', message, '500m'], name)
    }
    const requested = 'kubelet_container_requested_resizes_total{resource="cpu",requirement="requests",operation="increase"} 2'
    assert.deepEqual(metrics(), [requested, 'kubelet_pod_pending_resizes{reason="deferred"} 2'])
    api.deletePod('default', 'leaving', 1)
    await clock.advance(10_000)
    assert.deepEqual([cpuOf(status('important')), pendingOf(status('important'))], ['2500m', undefined])
    assert.deepEqual([cpuOf(status('humble')), pendingOf(status('humble'))?.reason], ['500m', 'Deferred'])
    assert.deepEqual(metrics(), [
      requested,
      'kubelet_pod_deferred_accepted_resizes_total{retry_trigger="pod_terminated"} 1',
      'kubelet_pod_pending_resizes{reason="deferred"} 1',
    ])
    assert.deepEqual(
      api
        .list<Event>('events')
        .filter(({ reason, involvedObject }) => reason?.startsWith('Resize') && involvedObject.name === 'important')
        .map(({ reason }) => reason),
      ['ResizeDeferred', 'ResizeStarted', 'ResizeCompleted'],
    )
  }))

test('KUB-22 a resize that is taken back is no longer waiting; what a pod has counts, not what it asks for', () =>
  withKubelet(async ({ api, clock, resize, status, metrics }) => {
    api.put('pods', pod('asks', '1'))
    await clock.advance(5_000)
    resize('asks', '100')
    await clock.advance(1_000)
    assert.equal(pendingOf(status('asks'))?.reason, 'Deferred')
    assert.ok(metrics().includes('kubelet_pod_pending_resizes{reason="deferred"} 1'))
    api.put('pods', pod('fits', '3'))
    await clock.advance(5_000)
    assert.equal(status('fits')?.phase, 'Running')
    resize('asks', '1')
    await clock.advance(1_000)
    assert.equal(pendingOf(status('asks')), undefined)
    const node = api.get<Node>('nodes', '', 'sim-1')
    assert.deepEqual(node?.status.declaredFeatures, [
      'ExtendWebSocketsToKubelet',
      'InPlacePodLevelResourcesVerticalScaling',
      'InPlacePodVerticalScalingInitContainers',
    ])
  }))
