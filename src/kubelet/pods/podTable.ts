/**
 * The pods of the node and how far each one is (L3). The table is created before the parts that read it; podWorkers.ts adds the pods and moves them on.
 * Upstream: kubelet/pod_workers.go podSyncStatuses, kubelet/pod/pod_manager.go (v1.36).
 */

import type { Timer } from '#base/clock'
import { unlessAborted } from '#base/orAborted'
import { type FrozenPod, isTerminalPhase } from '../core/containers.ts'
import type { PodWorkerState } from '../core/kubeletView.ts'
import type { CountedPod } from './podGauges.ts'
import type { PodStatusInput } from './podStatus.ts'
import type { PodMemory } from './syncPod.ts'

export interface PodTable {
  list(): FrozenPod[]
  /** Those that the API still has. A pod that was deleted without a grace period leaves room for others at once, while its containers end. */
  present(): FrozenPod[]
  get(uid: string): FrozenPod | undefined
  /** True when no container of the pod runs any more; also for unknown pods. */
  isTerminated(uid: string): boolean
  /** True when the resources of the terminated pod, such as volumes, are released too; also for unknown pods. */
  isFinished(uid: string): boolean
  /** Resolves when the pod is finished, at once for an unknown pod, and when the kubelet stops. */
  ended(uid: string): Promise<void>
  /** Every pod with the state of its worker. */
  states(): PodWorkerState[]
  /** Every pod with its stage, for metrics. */
  podCounts(): CountedPod[]
}

/** Asks for the end of a pod by the kubelet's own decision. */
export interface PodEnding {
  readonly uid: string
  readonly ending: NonNullable<PodStatusInput['ending']>
  readonly graceSeconds: number | undefined
}

export interface Worker {
  pod: FrozenPod
  stage: 'syncing' | 'terminating' | 'terminated'
  /** The pod is deleted from the API. */
  removed: boolean
  graceSeconds: number | undefined
  /** Aborts the running step. */
  abort: AbortController
  /** Another step is needed. */
  dirty: boolean
  running: Promise<void> | undefined
  timer: Timer | undefined
  readonly memory: PodMemory
  /** While containers are being killed: kills them again with the shorter grace period. */
  shortenGracePeriod: (() => void) | undefined
  /** Called once when the pod is finished. */
  readonly terminationCallbacks: (() => void)[]
  isFinished: boolean
  /** The pod was added again, with the same uid, before it was cleaned up: a new worker starts with it afterwards. */
  restartAs: FrozenPod | undefined
  /** Why the next step is made, as metrics report it. */
  cause: 'create' | 'update' | 'sync'
}

/** A worker for a pod that is new to this kubelet, in its first stage. */
export function newWorker(pod: FrozenPod, nowMs: number): Worker {
  return {
    pod,
    // A finished pod never runs again: what an earlier kubelet left running of it is stopped.
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
      backOffReportedMs: new Map(),
      firstSeenMs: pod.status?.startTime ? undefined : nowMs,
    },
    shortenGracePeriod: undefined,
    terminationCallbacks: [],
    isFinished: false,
    restartAs: undefined,
    cause: 'create',
  }
}

function stateOf({ pod: { metadata }, stage, running, removed, graceSeconds }: Worker): PodWorkerState {
  const { namespace = '', name = '', uid = '' } = metadata
  return { namespace, name, uid, stage, isWorking: running !== undefined, isDeleted: removed, ...(graceSeconds === undefined ? {} : { graceSeconds }) }
}

export interface WorkerTable extends PodTable {
  /** By the pod's uid. */
  readonly workers: Map<string, Worker>
}

/** @param signal aborted when the kubelet stops */
export function createPodTable(signal: AbortSignal): WorkerTable {
  const workers = new Map<string, Worker>()
  return {
    workers,
    list: () => [...workers.values()].map((worker) => worker.pod),
    present: () => [...workers.values()].filter(({ removed }) => !removed).map((worker) => worker.pod),
    get: (uid) => workers.get(uid)?.pod,
    isTerminated: (uid) => (workers.get(uid)?.stage ?? 'terminated') === 'terminated',
    isFinished: (uid) => workers.get(uid)?.isFinished ?? true,
    ended: async (uid) => {
      const worker = workers.get(uid)
      if (!worker || worker.isFinished) return
      await unlessAborted(new Promise<void>((resolve) => worker.terminationCallbacks.push(resolve)), signal)
    },
    states: () => [...workers.values()].map(stateOf),
    podCounts: () =>
      [...workers.values()].map(({ pod, stage, removed }) => ({ pod, lifecycle: stage === 'syncing' ? ('sync' as const) : stage, orphan: removed })),
  }
}
