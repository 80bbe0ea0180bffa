/**
 * One worker per pod (L3): syncing while it should run, terminating when it must not, terminated until it is gone from the API.
 * A pod never has two steps at a time; a deletion interrupts a step that starts things. Upstream: kubelet/pod_workers.go (v1.36).
 */
import { rm } from 'node:fs/promises'
import { keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { abortScope } from '#base/abortScope'
import type { Timer } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { pods } from '#client/builtIn'
import { requestedResizes } from '../allocation/resizeMetrics.ts'
import { type FrozenPod, isStaticPod, isTerminalPhase } from '../core/containers.ts'
import { equal } from '../core/equal.ts'
import { podLogDirectory } from '../core/podDirectory.ts'
import { podReference } from '../core/podReference.ts'
import type { PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { labelKeys } from '../core/runtimeLabels.ts'
import { removeLogLink } from '../logs/logLinks.ts'
import { killPod } from './killing.ts'
import type { CountedPod } from './podGauges.ts'
import type { PodStatusInput } from './podStatus.ts'
import { currentStatus, type PodMachinery, type PodMemory, RuntimeStatusError, readPod, syncPod } from './syncPod.ts'

export interface PodWorkers {
  /** The pod as the API has it now. */
  update(pod: FrozenPod): void
  /** The pod is gone from the API. */
  deleted(pod: FrozenPod): void
  /** Something happened to the pod: look again. */
  wake(uid: string): void
  /** The same for news of the runtime, which a step that is under way may still read by itself. */
  happened(uid: string): void
  /** Ends a pod by the kubelet's own decision (eviction). */
  end(uid: string, ending: NonNullable<PodStatusInput['ending']>, graceSeconds: number | undefined): void
  /** Resolves when nothing of the pod runs any more and what it used is given back; at once for a pod that nobody knows. */
  ended(uid: string): Promise<void>
  /** Whether nothing of the pod runs any more; true for one that is not known. */
  isTerminated(uid: string): boolean
  /** Whether what the pod used is given back as well, its volumes for one; true for one that is not known. */
  isFinished(uid: string): boolean
  /** Every pod, and how far it is. */
  census(): CountedPod[]
  list(): FrozenPod[]
  get(uid: string): FrozenPod | undefined
  /** Resolves when no step is running any more (after the signal). */
  settled(): Promise<void>
}

interface Worker {
  pod: FrozenPod
  stage: 'syncing' | 'terminating' | 'terminated'
  removed: boolean
  graceSeconds: number | undefined
  /** Aborts the step that is running. */
  abort: AbortController
  dirty: boolean
  running: Promise<void> | undefined
  timer: Timer | undefined
  readonly memory: PodMemory
  /** A kill with less grace that joins one that is under way. */
  hurry: (() => void) | undefined
  /** Who waits for the end. */
  readonly onEnd: (() => void)[]
  isFinished: boolean
  /** The same pod has come back while it was on its way out: it starts anew afterwards. */
  again: FrozenPod | undefined
  /** Why the next step is made, as metrics tell it. */
  cause: 'create' | 'update' | 'sync'
}

const retryMs = 2_000

function newWorker(pod: FrozenPod, nowMs: number): Worker {
  return {
    pod,
    // What has come to its end never runs again: of what an earlier kubelet left of it, everything is stopped.
    stage: isTerminalPhase(pod.status?.phase) ? 'terminating' : 'syncing',
    removed: false,
    graceSeconds: undefined,
    abort: new AbortController(),
    dirty: false,
    running: undefined,
    timer: undefined,
    memory: {
      startFailures: new Map(),
      terminationMessages: new Map(),
      resetCounts: new Map(),
      backOffToldMs: new Map(),
      firstSeenMs: pod.status?.startTime ? undefined : nowMs,
    },
    hurry: undefined,
    onEnd: [],
    isFinished: false,
    again: undefined,
    cause: 'create',
  }
}

/** The workers of a kubelet, for those who make their steps. */
interface Pool {
  readonly machinery: PodMachinery
  readonly workers: Map<string, Worker>
  readonly signal: AbortSignal
  wake(uid: string): void
  update(pod: FrozenPod): void
}

export function createPodWorkers(machinery: PodMachinery, signal: AbortSignal): PodWorkers {
  const { context } = machinery
  const workers = new Map<string, Worker>()

  const wake = (uid: string) => {
    const worker = workers.get(uid)
    if (!worker || signal.aborted) return
    worker.dirty = true
    worker.running ??= drain(uid, worker)
  }

  const happened = (uid: string) => {
    const worker = workers.get(uid)
    if (worker?.running) worker.memory.isOutdated = true
    else wake(uid)
  }

  const drain = async (uid: string, worker: Worker): Promise<void> => {
    // Lets the events of one moment gather before the step.
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
        // A sync that was interrupted is followed by what interrupted it; any other failure comes again by itself.
        if (stage !== 'syncing' || !worker.abort.signal.aborted) {
          const reason = messageOf(error)
          if (error instanceof RuntimeStatusError) {
            context.recorder.event(podReference(worker.pod), 'Warning', 'FailedSync', `error determining status: ${reason}`)
          }
          context.log.warn('Error syncing pod, skipping', { pod: worker.pod.metadata.name, namespace: worker.pod.metadata.namespace, error: reason })
          worker.timer = context.clock.timer(retryMs, () => wake(uid))
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
    } else if (shorter) worker.hurry?.()
  }

  const update = (pod: FrozenPod): void => {
    const uid = pod.metadata.uid ?? ''
    const known = workers.get(uid)
    if (known?.removed) {
      known.again = pod
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
    update,
    deleted: (pod) => {
      const worker = workers.get(pod.metadata.uid ?? '')
      if (!worker) return
      worker.removed = true
      worker.again = undefined
      // A forced deletion leaves the processes nothing but the least grace.
      startTerminating(worker, pod.metadata.deletionGracePeriodSeconds ?? 1)
      wake(pod.metadata.uid ?? '')
    },
    wake,
    happened,
    end: (uid, ending, graceSeconds) => {
      const worker = workers.get(uid)
      if (!worker || worker.stage === 'terminated') return
      worker.memory.ending ??= ending
      startTerminating(worker, graceSeconds)
      wake(uid)
    },
    isFinished: (uid) => workers.get(uid)?.isFinished ?? true,
    isTerminated: (uid) => (workers.get(uid)?.stage ?? 'terminated') === 'terminated',
    ended: async (uid) => {
      const worker = workers.get(uid)
      if (!worker || worker.isFinished) return
      await new Promise<void>((resolve) => {
        worker.onEnd.push(resolve)
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
    },
    census: () =>
      [...workers.values()].map(({ pod, stage, removed }) => ({ pod, lifecycle: stage === 'syncing' ? ('sync' as const) : stage, orphan: removed })),
    list: () => [...workers.values()].map((worker) => worker.pod),
    get: (uid) => workers.get(uid)?.pod,
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
    return await step(pool, worker)
  } finally {
    machinery.metrics.podWorkerDuration.observe((context.clock.monotonicMs() - startedMs) / 1000, { operation_type })
  }
}

/** A static pod of the same name that is still there: two must never run. */
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
      before.onEnd.push(() => pool.wake(worker.pod.metadata.uid ?? ''))
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
  for (const tell of worker.onEnd.splice(0)) tell()
  if (worker.removed) {
    await cleanUp(machinery, worker.pod)
    if (workers.get(worker.pod.metadata.uid ?? '') === worker) workers.delete(worker.pod.metadata.uid ?? '')
    if (worker.again) {
      machinery.metrics.restartedPods.inc({ static: isStaticPod(worker.again) ? 'true' : '' })
      pool.update(worker.again)
    }
  }
  return undefined
}

/** Our own status writes come back as updates: only what asks for something is worth a step. */
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

/** When the runtime has forgotten a finished pod, its status in the API is better than ours. */
function isWorthTelling(pod: FrozenPod, { containers }: PodRuntimeStatus): boolean {
  return containers.length > 0 || !isTerminalPhase(pod.status?.phase)
}

/** Stops everything of the pod, reporting on the way; throws while something still runs. */
async function terminate(machinery: PodMachinery, worker: Worker): Promise<void> {
  const { context, statuses, probes } = machinery
  const uid = worker.pod.metadata.uid ?? ''
  const status = await readPod(machinery, uid, worker.memory)
  if (!worker.removed && isWorthTelling(worker.pod, status)) statuses.set(worker.pod, currentStatus(machinery, worker.pod, status, worker.memory, false))
  probes.stopLivenessAndStartup(uid)
  const kills: Promise<void>[] = []
  const kill = () => kills.push(killPod(context, worker.pod, status, { graceSeconds: worker.graceSeconds }))
  worker.hurry = kill
  kill()
  try {
    for (let done = 0; done < kills.length; done++) await kills[done]
  } catch (error) {
    const reason = messageOf(error)
    context.recorder.event(podReference(worker.pod), 'Warning', 'FailedKillPod', `error killing pod: ${reason}`)
    throw error
  } finally {
    worker.hurry = undefined
    await Promise.allSettled(kills)
  }
  const after = await readPod(machinery, uid, worker.memory)
  if (after.containers.some((record) => record.state === 'running')) throw new Error('containers are still running')
  // Before the API hears of the end, by which others may get what the pod had.
  await context.resources().release(uid)
}

/** The last report, then what the pod used on the node is given back, then the API object goes if it is to be deleted. */
async function finish(machinery: PodMachinery, worker: Worker): Promise<void> {
  const { context, statuses, probes } = machinery
  const uid = worker.pod.metadata.uid ?? ''
  if (!worker.removed) {
    const status = await readPod(machinery, uid, worker.memory)
    if (isWorthTelling(worker.pod, status)) statuses.set(worker.pod, currentStatus(machinery, worker.pod, status, worker.memory, true))
    // What was held back while something could still run.
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

/** What remains of a pod that is gone from the API: containers, sandboxes, logs. */
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
