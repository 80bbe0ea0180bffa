/**
 * One worker per pod (L3): syncing while it should run, terminating when it must not, terminated until it is deleted from the API.
 * A pod never has two steps at a time; a deletion interrupts a step that starts containers.
 * In order: podEvents.ts wakes the worker, podAdmission.ts admits a new pod, syncPod.ts makes a step: podActions.ts plans it, podStarter.ts and killing.ts
 * carry it out with the configurations of runtimeConfig.ts; podStatus.ts computes the status and statusManager.ts sends it.
 * Upstream: kubelet/pod_workers.go (v1.36).
 */
import { rm } from 'node:fs/promises'
import { keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { abortScope } from '#base/abortScope'
import { messageOf } from '#base/messageOf'
import { type SpanOptions, type Tracer, traced } from '#base/traceContext'
import { pods } from '#client/builtIn'
import { requestedResizes } from '../allocation/resizeMetrics.ts'
import { type FrozenPod, isStaticPod, isTerminalPhase } from '../core/containers.ts'
import { equal } from '../core/equal.ts'
import { podLogDirectory } from '../core/podDirectory.ts'
import { podReference } from '../core/podReference.ts'
import type { PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { noted } from '../core/podTrace.ts'
import { labelKeys } from '../core/runtimeLabels.ts'
import { removeLogLink } from '../logs/logLinks.ts'
import { killPod } from './killing.ts'
import { newWorker, type PodEnding, type PodTable, type Worker, type WorkerTable } from './podTable.ts'
import { errorBackOffMs, jittered } from './retryDelay.ts'
import { currentStatus, type PodMachinery, RuntimeStatusError, readPod, syncPod } from './syncPod.ts'

/** The workers, and the table of their pods. */
export interface PodWorkers extends PodTable {
  /** Takes the pod as the API has it now. */
  update(pod: FrozenPod): void
  /** The pod is deleted from the API. */
  deleted(pod: FrozenPod): void
  /** Something about the pod changed: makes another step. */
  wake(uid: string): void
  /** The runtime reports a change of the pod: makes another step, unless the running one has yet to read the runtime. */
  runtimeChanged(uid: string): void
  /** Ends a pod by the kubelet's own decision, such as an eviction. */
  end(ending: PodEnding): void
  /** Resolves when no step is running any more; called after the signal. */
  settled(): Promise<void>
}

/** What a step needs of the workers. */
interface Pool {
  readonly machinery: PodMachinery
  readonly workers: Map<string, Worker>
  readonly signal: AbortSignal
  wake(uid: string): void
  update(pod: FrozenPod): void
}

export function createPodWorkers(machinery: PodMachinery, table: WorkerTable, signal: AbortSignal): PodWorkers {
  const { context } = machinery
  const { workers } = table

  const wake = (uid: string) => {
    const worker = workers.get(uid)
    if (!worker || signal.aborted) return
    worker.dirty = true
    worker.running ??= drain(uid, worker)
  }

  const runtimeChanged = (uid: string) => {
    const worker = workers.get(uid)
    if (worker?.running) worker.memory.isOutdated = true
    else wake(uid)
  }

  const drain = async (uid: string, worker: Worker): Promise<void> => {
    // Waits one turn so that simultaneous events share one step.
    await Promise.resolve()
    while ((worker.dirty || worker.memory.isOutdated) && !signal.aborted) {
      worker.dirty = false
      worker.memory.isOutdated = false
      worker.timer?.cancel()
      const { stage } = worker
      try {
        const againInMs = await timedStep(pool, worker)
        if (againInMs !== undefined && !signal.aborted) worker.timer = context.clock.timer(againInMs, () => wake(uid))
      } catch (error) {
        if (signal.aborted) break
        // An interrupted sync is followed by the termination that interrupted it; any other failure is retried.
        if (stage !== 'syncing' || !worker.abort.signal.aborted) {
          const reason = messageOf(error)
          if (error instanceof RuntimeStatusError) {
            context.recorder.event(podReference(worker.pod), 'Warning', 'FailedSync', `error determining status: ${reason}`)
          }
          context.log.warn('Error syncing pod, skipping', { pod: worker.pod.metadata.name, namespace: worker.pod.metadata.namespace, error: reason })
          worker.timer = context.clock.timer(jittered(errorBackOffMs, context.random), () => wake(uid))
        }
      }
    }
    worker.running = undefined
  }

  const startTerminating = (worker: Worker, graceSeconds: number | undefined) => {
    const shorter = graceSeconds !== undefined && (worker.graceSeconds === undefined || graceSeconds < worker.graceSeconds)
    if (shorter) worker.graceSeconds = graceSeconds
    if (worker.stage === 'syncing') {
      worker.stage = 'terminating'
      worker.abort.abort(new Error('the pod is to be deleted'))
    } else if (shorter) worker.shortenGracePeriod?.()
  }

  const update = (pod: FrozenPod): void => {
    const uid = pod.metadata.uid ?? ''
    const known = workers.get(uid)
    if (known?.removed) {
      known.restartAs = pod
      return
    }
    const sync = !known || needsSync(known.pod, pod)
    for (const labels of known && sync ? requestedResizes(known.pod, pod) : []) machinery.metrics.requestedResizes.inc(labels)
    const worker = known ?? newWorker(pod, context.clock.monotonicMs())
    worker.pod = pod
    if (known) {
      machinery.statuses.noticed(pod)
      if (worker.cause === 'sync' && sync) worker.cause = 'update'
    } else {
      workers.set(uid, worker)
      context.objects.registerPod(pod)
      machinery.metrics.starts.seen(pod)
      machinery.metrics.containersPerPod.observe(pod.spec.containers.length)
    }
    if (pod.metadata.deletionTimestamp) startTerminating(worker, pod.metadata.deletionGracePeriodSeconds)
    const isEndedByOthers = worker.stage === 'syncing' && isTerminalPhase(pod.status?.phase)
    if (isEndedByOthers) startTerminating(worker, undefined)
    if (sync || isEndedByOthers) wake(uid)
  }

  const pool: Pool = { machinery, workers, signal, wake, update }
  return {
    ...table,
    update,
    deleted: (pod) => {
      const worker = workers.get(pod.metadata.uid ?? '')
      if (!worker) return
      worker.removed = true
      worker.restartAs = undefined
      // A forced deletion has the shortest grace period.
      startTerminating(worker, pod.metadata.deletionGracePeriodSeconds ?? 1)
      wake(pod.metadata.uid ?? '')
    },
    wake,
    runtimeChanged,
    end: ({ uid, ending, graceSeconds }) => {
      const worker = workers.get(uid)
      if (!worker || worker.stage === 'terminated') return
      worker.memory.ending ??= ending
      startTerminating(worker, graceSeconds)
      wake(uid)
    },
    settled: async () => {
      await Promise.allSettled([...workers.values()].map((worker) => worker.running))
      for (const worker of workers.values()) worker.timer?.cancel()
    },
  }
}

async function timedStep(pool: Pool, worker: Worker): Promise<number | undefined> {
  const { machinery } = pool
  const { context } = machinery
  const startedMs = context.clock.monotonicMs()
  const operation_type = worker.stage === 'syncing' ? worker.cause : 'kill'
  if (worker.cause === 'create') machinery.metrics.podWorkerStartDuration.observe((startedMs - (worker.memory.firstSeenMs ?? startedMs)) / 1000)
  worker.cause = 'sync'
  try {
    const { namespace = '', name = '' } = worker.pod.metadata
    const about = { component: 'kubelet', what: `sync (${operation_type})`, node: context.config.nodeName }
    const work = () => traced(context.tracer, spanOf(context.tracer, worker), () => step(pool, worker))
    return await noted(context.trace, { namespace, name }, about, work, () => worker.stage)
  } finally {
    machinery.metrics.podWorkerDuration.observe((context.clock.monotonicMs() - startedMs) / 1000, { operation_type })
  }
}

const stepNames = { syncing: 'syncPod', terminating: 'syncTerminatingPod', terminated: 'syncTerminatedPod' } as const

/** Upstream begins a trace of its own with each step. One for a pod whose trace is followed belongs to that. */
function spanOf(tracer: Tracer | undefined, { pod, stage }: Worker): SpanOptions {
  const { namespace = '', name = '', uid = '' } = pod.metadata
  const attributes = { 'k8s.pod.uid': uid, 'k8s.pod': `${namespace}/${name}`, 'k8s.pod.name': name, 'k8s.namespace.name': namespace }
  return { name: stepNames[stage], service: 'kubelet', parent: tracer?.followedTraceOf(pod), isRoot: true, attributes }
}

/** A static pod of the same name that is not finished: two of them must never run. */
function predecessor({ workers }: Pool, worker: Worker): Worker | undefined {
  if (!isStaticPod(worker.pod)) return undefined
  for (const other of workers.values()) {
    if (other === worker) return undefined
    if (!other.isFinished && isStaticPod(other.pod) && keyOf(other.pod) === keyOf(worker.pod)) return other
  }
  return undefined
}

async function step(pool: Pool, worker: Worker): Promise<number | undefined> {
  const { machinery, workers, signal } = pool
  if (worker.stage === 'syncing') {
    const before = predecessor(pool, worker)
    if (before) {
      before.terminationCallbacks.push(() => pool.wake(worker.pod.metadata.uid ?? ''))
      return undefined
    }
    using scope = abortScope(signal)
    worker.abort = scope
    const { terminal, againInMs } = await syncPod(machinery, worker.pod, worker.memory, scope.signal)
    if (!terminal) return againInMs
    worker.stage = 'terminating'
  }
  if (worker.stage === 'terminating') {
    await terminate(machinery, worker)
    worker.stage = 'terminated'
  }
  await finish(machinery, worker)
  worker.isFinished = true
  for (const callback of worker.terminationCallbacks.splice(0)) callback()
  if (worker.removed) {
    await cleanUp(machinery, worker.pod)
    if (workers.get(worker.pod.metadata.uid ?? '') === worker) workers.delete(worker.pod.metadata.uid ?? '')
    if (worker.restartAs) {
      machinery.metrics.restartedPods.inc({ static: isStaticPod(worker.restartAs) ? 'true' : '' })
      pool.update(worker.restartAs)
    }
  }
  return undefined
}

/** The kubelet's own status writes arrive as updates: only a change of metadata, spec or readiness gates needs a step. */
function needsSync(before: FrozenPod, after: FrozenPod): boolean {
  const asked = ({ metadata }: FrozenPod) => [
    metadata.generation,
    metadata.deletionTimestamp,
    metadata.deletionGracePeriodSeconds,
    metadata.labels,
    metadata.annotations,
  ]
  const gates = ({ spec, status }: FrozenPod) =>
    (spec.readinessGates ?? []).map(({ conditionType }) => status?.conditions?.find((condition) => condition.type === conditionType)?.status)
  return !equal(asked(before), asked(after)) || !equal(gates(before), gates(after)) || !equal(before.spec, after.spec)
}

/** False when the runtime has removed a finished pod's containers: its status in the API is then more complete. */
function isWorthReporting(pod: FrozenPod, { containers }: PodRuntimeStatus): boolean {
  return containers.length > 0 || !isTerminalPhase(pod.status?.phase)
}

/** Stops all containers and sandboxes of the pod and reports its status. @throws Error while a container still runs */
async function terminate(machinery: PodMachinery, worker: Worker): Promise<void> {
  const { context, statuses, probes } = machinery
  const uid = worker.pod.metadata.uid ?? ''
  const status = await readPod(machinery, worker.pod, worker.memory)
  if (!worker.removed && isWorthReporting(worker.pod, status)) statuses.set(worker.pod, currentStatus(machinery, worker.pod, status, worker.memory, false))
  probes.stopLivenessAndStartup(uid)
  const kills: Promise<void>[] = []
  const kill = () => kills.push(killPod(context, worker.pod, status, { graceSeconds: worker.graceSeconds }))
  worker.shortenGracePeriod = kill
  kill()
  try {
    for (let done = 0; done < kills.length; done++) await kills[done]
  } catch (error) {
    const reason = messageOf(error)
    context.recorder.event(podReference(worker.pod), 'Warning', 'FailedKillPod', `error killing pod: ${reason}`)
    throw error
  } finally {
    worker.shortenGracePeriod = undefined
    await Promise.allSettled(kills)
  }
  const after = await readPod(machinery, worker.pod, worker.memory)
  if (after.containers.some((record) => record.state === 'running')) throw new Error('containers are still running')
  // Before the end is reported: the scheduler then gives the resources to other pods.
  await context.resources.release(uid)
}

/** Reports the final status, releases the pod's resources on the node, then deletes the API object if its deletion was requested. */
async function finish(machinery: PodMachinery, worker: Worker): Promise<void> {
  const { context, statuses, probes } = machinery
  const uid = worker.pod.metadata.uid ?? ''
  if (!worker.removed) {
    const status = await readPod(machinery, worker.pod, worker.memory)
    if (isWorthReporting(worker.pod, status)) statuses.set(worker.pod, currentStatus(machinery, worker.pod, status, worker.memory, true))
    // Sends the terminal phase, which was held back while containers could run.
    statuses.resend(uid)
    await statuses.flush(uid)
  }
  probes.remove(uid)
  await machinery.volumes.tearDownPod(uid)
  await machinery.cgroups.removePod(worker.pod)
  await machinery.allocations.forget(uid, worker.removed ? 'pods_removed' : 'pod_terminated')
  context.objects.unregisterPod(uid)
  if (worker.removed || !worker.pod.metadata.deletionTimestamp) return
  const { namespace, name = '' } = worker.pod.metadata
  try {
    await context.client.of(pods).delete({ namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } })
  } catch (error) {
    // Gone already, or another pod has its name.
    if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
  }
}

/** Removes the containers, sandboxes and logs of a pod that is deleted from the API. */
export async function cleanUp(machinery: PodMachinery, pod: FrozenPod): Promise<void> {
  const { context, statuses, crashLoop } = machinery
  const uid = pod.metadata.uid ?? ''
  const containers = await context.runtime.listContainers(uid)
  await Promise.all(containers.map((container) => context.runtime.removeContainer(container.id)))
  for (const sandbox of await context.runtime.listPodSandbox(uid)) {
    await context.runtime.stopPodSandbox(sandbox.id)
    await context.runtime.removePodSandbox(sandbox.id)
  }
  if (context.host) await rm(context.host.path(podLogDirectory(context.config, pod)), { recursive: true, force: true })
  for (const { id, labels } of containers) await removeLogLink(context, pod, labels[labelKeys.containerName] ?? '', id)
  statuses.remove(uid)
  machinery.metrics.starts.forget(uid)
  crashLoop.reset(`${uid}/`)
}
