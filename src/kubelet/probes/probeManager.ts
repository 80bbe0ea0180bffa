/**
 * Runs the probes of the containers on this node (L3): one worker per probe and container, results by container id.
 * Upstream: kubelet/prober/prober_manager.go, worker.go (v1.36).
 */
import type { Probe } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { KubeletContext } from '../context.ts'
import type { ProbeResults } from '../pods/containerStatuses.ts'
import { allContainers, type FrozenContainer, type FrozenPod, isRestartableInitContainer } from '../pods/containers.ts'
import type { ProbeView } from '../pods/podActions.ts'
import { podReference } from '../pods/podReference.ts'
import { type ContainerRecord, findContainer, type PodRuntimeStatus, sandboxIPs } from '../runtime/podRuntimeStatus.ts'
import { createProbeMetrics, probeLabel } from './probeMetrics.ts'
import { runProbe } from './prober.ts'
import { initialProbeState, nextProbeState, type ProbeKind, type ProbeState, probeIsDone } from './probeState.ts'

export interface ProbeManager extends ProbeResults, ProbeView {
  /** Starts workers for running containers that have none yet, and stops those of containers that are gone. */
  update(pod: FrozenPod, status: PodRuntimeStatus): void
  /** Liveness and startup probes of a pod that terminates end; readiness goes on, so that endpoints learn of it. */
  stopLivenessAndStartup(uid: string): void
  remove(uid: string): void
  /** What all probes said so far, in Prometheus' text format. */
  metricsText(): string
}

interface Worker {
  readonly kind: ProbeKind
  readonly stop: AbortController
  state: ProbeState
}

const kinds = ['startup', 'liveness', 'readiness'] as const

const probeOf = (container: FrozenContainer, kind: ProbeKind): Frozen<Probe> | undefined =>
  kind === 'startup' ? container.startupProbe : kind === 'liveness' ? container.livenessProbe : container.readinessProbe

/** @param onChange hears the uid of a pod whose probe results changed. */
export function createProbeManager(context: KubeletContext, onChange: (uid: string) => void, signal: AbortSignal): ProbeManager {
  /** Pod uid → container id → workers. */
  const pods = new Map<string, Map<string, Worker[]>>()
  const metrics = createProbeMetrics()
  const workersOf = (containerId: string): Worker[] => {
    for (const containers of pods.values()) {
      const workers = containers.get(containerId)
      if (workers) return workers
    }
    return []
  }
  const resultOf = (containerId: string, kind: ProbeKind) => workersOf(containerId).find((worker) => worker.kind === kind)?.state.result
  const started = (containerId: string, container: FrozenContainer) => !container.startupProbe || resultOf(containerId, 'startup') === 'Success'

  const work = async (pod: FrozenPod, container: FrozenContainer, record: ContainerRecord, podIP: string, worker: Worker) => {
    const containerId = record.id
    const probe = probeOf(container, worker.kind)
    if (!probe) return
    const periodMs = (probe.periodSeconds ?? 10) * 1000
    const ended = AbortSignal.any([signal, worker.stop.signal])
    // Counted from the container's start, which may be long ago when the kubelet starts again.
    const dueMs = record.startedAtMs + (probe.initialDelaySeconds ?? 0) * 1000
    await context.clock.sleep(Math.max(0, dueMs - context.clock.now()), ended)
    for (;;) {
      // Liveness and readiness wait for the startup probe.
      if (worker.kind === 'startup' || started(containerId, container)) {
        const askedMs = context.clock.monotonicMs()
        const { outcome, output } = await runProbe(context, probe, { kind: worker.kind, container, containerId, podIP })
        if (ended.aborted) return
        metrics.observe(pod, container.name, worker.kind, outcome, (context.clock.monotonicMs() - askedMs) / 1000)
        if (outcome === 'Failure') {
          context.recorder.event(podReference(pod, container.name), 'Warning', 'Unhealthy', `${probeLabel[worker.kind]} probe failed: ${output}`)
        }
        const before = worker.state.result
        worker.state = nextProbeState(worker.state, outcome, probe)
        if (worker.state.result !== before) onChange(pod.metadata.uid ?? '')
        if (probeIsDone(worker.kind, worker.state)) return
      }
      await context.clock.sleep(periodMs, ended)
    }
  }

  const start = (pod: FrozenPod, container: FrozenContainer, record: ContainerRecord, podIP: string): Worker[] =>
    kinds
      .filter((kind) => probeOf(container, kind))
      .map((kind) => {
        const worker: Worker = { kind, stop: new AbortController(), state: initialProbeState(kind) }
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
          // Known before it starts, so that readiness counts as failed from the first moment.
          workers.set(record.id, [])
          workers.set(record.id, start(pod, container, record, podIP))
        }
      }
      for (const [containerId, own] of workers) {
        if (running.has(containerId)) continue
        for (const worker of own) worker.stop.abort()
        workers.delete(containerId)
      }
      if (workers.size > 0) pods.set(uid, workers)
      else pods.delete(uid)
    },
    stopLivenessAndStartup: (uid) => {
      for (const worker of [...(pods.get(uid)?.values() ?? [])].flat()) if (worker.kind !== 'readiness') worker.stop.abort()
    },
    remove: (uid) => {
      for (const worker of [...(pods.get(uid)?.values() ?? [])].flat()) worker.stop.abort()
      pods.delete(uid)
      metrics.remove(uid)
    },
    metricsText: metrics.text,
  }
}
