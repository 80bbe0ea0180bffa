/**
 * Runs the probes of the containers on this node (L3): one worker per probe and container, results by container id.
 * In order: prober.ts carries out one probe (grpcProbe.ts for gRPC), probeState.ts turns its result into the container's state, probeMetrics.ts counts it.
 * Upstream: kubelet/prober/prober_manager.go, worker.go (v1.36).
 */
import type { Probe } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { abortScope } from '#base/abortScope'
import type { MetricFamily } from '#base/metricFamily'
import { createWakeUp, type WakeUp } from '#base/wakeUp'
import { allContainers, type FrozenContainer, type FrozenPod, isRestartableInitContainer } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podReference } from '../core/podReference.ts'
import { type ContainerRecord, findContainer, type PodRuntimeStatus, sandboxIPs } from '../core/podRuntimeStatus.ts'
import type { ProbeResults, ProbeView } from '../core/probeResults.ts'
import { createProbeMetrics, probeLabel } from './probeMetrics.ts'
import { type ProbeResult, runProbe } from './prober.ts'
import { initialProbeState, nextProbeState, type ProbeKind, type ProbeState, probeIsDone } from './probeState.ts'

export interface ProbeManager extends ProbeResults, ProbeView {
  /** Starts workers for running containers that have none yet, and stops workers of removed containers. */
  update(pod: FrozenPod, status: PodRuntimeStatus): void
  /** Stops liveness and startup probes of a terminating pod; readiness probes continue, so that endpoints follow them. */
  stopLivenessAndStartup(uid: string): void
  remove(uid: string): void
  /** The results of all probes so far. */
  metricFamilies(): MetricFamily[]
}

interface Worker {
  readonly kind: ProbeKind
  readonly stop: AbortController
  /** Rung when it is to ask at once. */
  readonly bell: WakeUp
  state: ProbeState
}

/** A container that an earlier kubelet started, as its pod's status reports it. */
interface Adopted {
  readonly ready: boolean
  readonly started: boolean
}

const kinds = ['startup', 'liveness', 'readiness'] as const

const probeOf = (container: FrozenContainer, kind: ProbeKind): Frozen<Probe> | undefined =>
  kind === 'startup' ? container.startupProbe : kind === 'liveness' ? container.livenessProbe : container.readinessProbe

/** A restarted kubelet keeps the reported results of a container until its probes have new ones. */
function firstState(kind: ProbeKind, adopted: Adopted | undefined): ProbeState {
  const initial = initialProbeState(kind)
  const wasFine = kind === 'readiness' ? adopted?.ready : kind === 'startup' ? adopted?.started : false
  return wasFine ? { ...initial, result: 'Success' } : initial
}

function recordEvent(context: KubeletContext, pod: FrozenPod, container: FrozenContainer, kind: ProbeKind, { outcome, output }: ProbeResult): void {
  const about = podReference(pod, container.name)
  const label = `${probeLabel[kind]} probe`
  if (outcome === 'Failure') context.recorder.event(about, 'Warning', 'Unhealthy', `${label} failed: ${output}`)
  if (outcome === 'Warning') context.recorder.event(about, 'Warning', 'ProbeWarning', `${label} warning: ${output}`)
  if (outcome === 'Unknown') context.recorder.event(about, 'Warning', 'Unhealthy', `${label} errored and resulted in unknown state: ${output}`)
}

/** @param onChange called with the uid of a pod whose probe results changed */
export function createProbeManager(context: KubeletContext, onChange: (uid: string) => void, signal: AbortSignal): ProbeManager {
  /** Pod uid → container id → workers. */
  const pods = new Map<string, Map<string, Worker[]>>()
  const byContainer = new Map<string, Worker[]>()
  const metrics = createProbeMetrics()
  const kubeletStartMs = context.clock.now()
  const resultOf = (containerId: string, kind: ProbeKind) => byContainer.get(containerId)?.find((worker) => worker.kind === kind)?.state.result
  const endAll = (workers: Map<string, Worker[]> | undefined) => {
    for (const [containerId, own] of workers ?? []) {
      for (const worker of own) worker.stop.abort()
      byContainer.delete(containerId)
    }
  }
  const started = (containerId: string, container: FrozenContainer) => !container.startupProbe || resultOf(containerId, 'startup') === 'Success'

  const work = async (pod: FrozenPod, container: FrozenContainer, record: ContainerRecord, podIP: string, worker: Worker) => {
    const containerId = record.id
    const probe = probeOf(container, worker.kind)
    if (!probe) return
    const periodMs = (probe.periodSeconds ?? 10) * 1000
    using scope = abortScope(signal, worker.stop.signal)
    const ended = scope.signal
    // Counted from the container's start, which may be long ago when the kubelet starts again.
    const dueMs = record.startedAtMs + (probe.initialDelaySeconds ?? 0) * 1000
    // A kubelet that starts again finds many containers: they are not all asked in the same moment.
    const spreadMs = isAdopted(record) ? context.random.next() * periodMs : 0
    await context.clock.sleep(Math.max(spreadMs, dueMs - context.clock.now()), ended)
    while (!probeIsDone(worker.kind, worker.state)) {
      // Liveness and readiness wait for the startup probe.
      if (worker.kind === 'startup' || started(containerId, container)) {
        const askedMs = context.clock.monotonicMs()
        const result = await runProbe(context, probe, { kind: worker.kind, container, containerId, podIP })
        if (ended.aborted) return
        // A probe that could not be carried out is no result of the container.
        if (result.outcome !== 'Unknown') metrics.observe(pod, container.name, worker.kind, result.outcome, (context.clock.monotonicMs() - askedMs) / 1000)
        recordEvent(context, pod, container, worker.kind, result)
        const before = worker.state.result
        if (result.outcome !== 'Unknown') worker.state = nextProbeState(worker.state, result.outcome === 'Failure' ? 'Failure' : 'Success', probe)
        if (worker.state.result !== before) {
          onChange(pod.metadata.uid ?? '')
          if (worker.kind === 'startup') for (const other of byContainer.get(containerId) ?? []) other.bell.ring()
        }
      }
      const timer = context.clock.timer(periodMs, worker.bell.ring)
      await worker.bell.wait(ended)
      timer.cancel()
      if (ended.aborted) return
    }
  }

  const isAdopted = (record: ContainerRecord) => record.startedAtMs < kubeletStartMs
  const adopted = (pod: FrozenPod, record: ContainerRecord): Adopted | undefined => {
    if (!isAdopted(record)) return undefined
    const statuses = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])]
    const status = statuses.find(({ containerID }) => containerID?.endsWith(`//${record.id}`))
    return { ready: status?.ready ?? false, started: status?.started ?? false }
  }

  const start = (pod: FrozenPod, container: FrozenContainer, record: ContainerRecord, podIP: string): Worker[] =>
    kinds
      .filter((kind) => probeOf(container, kind))
      .map((kind) => {
        const worker: Worker = { kind, stop: new AbortController(), bell: createWakeUp(), state: firstState(kind, adopted(pod, record)) }
        work(pod, container, record, podIP, worker).catch((error: unknown) => {
          if (!worker.stop.signal.aborted && !signal.aborted) context.log.error(error, 'Probe worker failed', { container: container.name })
        })
        return worker
      })

  return {
    ready: (containerId, container) => !container.readinessProbe || resultOf(containerId, 'readiness') === 'Success',
    started,
    liveness: (containerId) => resultOf(containerId, 'liveness'),
    startup: (containerId) => resultOf(containerId, 'startup'),
    update: (pod, status) => {
      const uid = pod.metadata.uid ?? ''
      const workers = pods.get(uid) ?? new Map<string, Worker[]>()
      const podIP = sandboxIPs(status)[0] ?? context.config.nodeIPs[0] ?? '127.0.0.1'
      const running = new Set<string>()
      for (const { kind, container } of allContainers(pod)) {
        if (kind === 'ephemeral' || (kind === 'init' && !isRestartableInitContainer(container))) continue
        const record = findContainer(status, container.name)
        if (record?.state !== 'running') continue
        running.add(record.id)
        if (!workers.has(record.id) && kinds.some((probeKind) => probeOf(container, probeKind))) {
          const own = start(pod, container, record, podIP)
          workers.set(record.id, own)
          byContainer.set(record.id, own)
        }
      }
      for (const [containerId, own] of workers) {
        if (running.has(containerId)) continue
        endAll(new Map([[containerId, own]]))
        workers.delete(containerId)
      }
      if (workers.size > 0) pods.set(uid, workers)
      else pods.delete(uid)
    },
    stopLivenessAndStartup: (uid) => {
      for (const worker of [...(pods.get(uid)?.values() ?? [])].flat()) if (worker.kind !== 'readiness') worker.stop.abort()
    },
    remove: (uid) => {
      endAll(pods.get(uid))
      pods.delete(uid)
      metrics.remove(uid)
    },
    metricFamilies: metrics.families,
  }
}
