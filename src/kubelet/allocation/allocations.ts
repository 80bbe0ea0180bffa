/**
 * Keeps the allocated resources of each pod and the resizes that wait for room (L3). A pod runs with its allocation, not with its spec, until the node
 * has room; waiting resizes are retried when something changes, and periodically.
 * In order: admission.ts decides about a new pod (sysctls.ts is a part of it), preemption.ts selects pods to end for a critical one; this file allocates,
 * resize.ts decides about resizes, resizeProgress.ts reports them, podResourcesState.ts is the checkpoint.
 * Upstream: kubelet/allocation/allocation_manager.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { ownValue } from '#base/bareMap'
import { deepCopy, deepFreeze } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { type CheckpointFile, checkpointFile, noCheckpoint } from '../core/checkpointFile.ts'
import { type FrozenContainer, type FrozenPod, isTerminalPhase } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { ConditionDraft } from '../core/podConditions.ts'
import { type PodResourceInfo, type PodResourcesState, parsePodResources, renderPodResources } from './podResourcesState.ts'
import { isResized, type ResizeRoom, type Resources, refuseResize, resizeOrder } from './resize.ts'
import { createResizeProgress } from './resizeProgress.ts'

export interface Allocations {
  /** The pod with what it has been given in place of what it asks for. */
  allocatedPod(pod: FrozenPod): FrozenPod
  /** The pods that count as taken: those that were admitted, with what they have been given. */
  allocatedPods(): FrozenPod[]
  /** A pod that is to run: what it asks for now is what it has. */
  setAside(pod: FrozenPod): undefined
  /** Writes the checkpoint of the allocation. The pod runs even if that fails. */
  admitted(): Promise<void>
  /** The pod as the API has it now: gives it what it asks for if that is possible. */
  resize(pod: FrozenPod): Promise<void>
  /** PodResizePending and PodResizeInProgress, as far as they hold. */
  conditions(podUid: string): ConditionDraft[]
  /** What a container or, without a name, the pod runs with; undefined: not known. */
  actuated(podUid: string, container?: string): Resources | undefined
  setActuated(podUid: string, container: string | undefined, resources: Resources): Promise<void>
  /** A resize is over, or cannot be carried out. */
  finished(pod: FrozenPod): void
  failed(pod: FrozenPod, message: string): void
  /** Only in memory, so that a pod can be deleted while the disk is full: the next write omits it. */
  forget(podUid: string, because?: 'pods_removed' | 'pod_terminated'): Promise<void>
  /** The same for all unknown pods, such as pods that were deleted while no kubelet ran. */
  forgetOthers(isKnown: (podUid: string) => boolean): void
  /** Looks at waiting resizes from time to time, until aborted. */
  run(signal: AbortSignal): Promise<void>
}

/** Why waiting resizes are retried, by the names in metrics. */
type RetryTrigger = 'pods_added' | 'pod_updated' | 'pods_removed' | 'pod_terminated' | 'periodic_retry'

const firstRetryMs = 30_000
const retryMs = 180_000

export interface AllocationsDeps {
  readonly context: KubeletContext
  pods(): readonly FrozenPod[]
  wake(podUids: readonly string[]): void
  room(): ResizeRoom
}

function infoOf({ spec }: FrozenPod): PodResourceInfo {
  const containers = [...(spec.initContainers ?? []), ...spec.containers].map(({ name, resources }) => [name, resources ?? {}] as const)
  return { containers: Object.fromEntries(containers), ...(spec.resources ? { pod: spec.resources } : {}) }
}

/** @throws Error when what was remembered is damaged: running pods could be given to others */
export async function createAllocations({ context, pods, wake, room }: AllocationsDeps): Promise<Allocations> {
  const { state, save } = await openState(context)
  const progress = createResizeProgress(context)
  const { pending } = progress
  const uidOf = (pod: FrozenPod) => pod.metadata.uid ?? ''

  const allocatedPod = (pod: FrozenPod): FrozenPod => {
    const info = state.allocated.get(uidOf(pod))
    return info ? withResources(pod, info) : pod
  }
  // Pods that started before this kubelet count as well, even without a checkpoint of their allocation.
  const counts = (pod: FrozenPod) => state.allocated.has(uidOf(pod)) || pod.status?.startTime !== undefined
  const allocatedPods = () =>
    pods()
      .filter((pod) => !isTerminalPhase(pod.status?.phase) && counts(pod))
      .map(allocatedPod)

  /** Allocates what one pod asks for, or records why not. Returns whether anything changed. */
  const tryOne = (pod: FrozenPod, trigger: RetryTrigger): boolean => {
    const uid = uidOf(pod)
    const allocated = allocatedPod(pod)
    if (!isResized(allocated, pod)) return progress.takenBack(uid)
    const refusal = refuseResize(pod, allocated, allocatedPods(), room())
    if (refusal) return progress.refused(pod, refusal)
    state.allocated.set(uid, infoOf(pod))
    progress.started(pod, trigger)
    return true
  }

  /** @param asking the pod that has just asked: what can never be done is not tried again for others until they ask for something else */
  const tryAll = async (trigger: RetryTrigger, asking?: string): Promise<void> => {
    const waiting = pods().flatMap((pod) => {
      const entry = pending.get(uidOf(pod))
      const isDecided = entry?.condition?.reason === 'Infeasible' && uidOf(pod) !== asking
      return entry && !isDecided ? [{ pod, allocated: allocatedPod(pod), sinceMs: entry.sinceMs }] : []
    })
    const changed = resizeOrder(waiting).filter(({ pod }) => tryOne(pod, trigger))
    progress.count()
    if (changed.length === 0) return
    await save('allocated')
    wake(changed.map(({ pod }) => uidOf(pod)))
  }

  const retryAll = (trigger: RetryTrigger) => tryAll(trigger).catch((error: unknown) => context.log.warn('Retrying resizes failed', { error: String(error) }))

  return {
    allocatedPod,
    allocatedPods,
    setAside: (pod) => void state.allocated.set(uidOf(pod), infoOf(pod)),
    admitted: () => save('allocated').catch((error: unknown) => context.log.warn('Writing the allocations of pods failed', { error: String(error) })),
    resize: async (pod) => {
      const uid = uidOf(pod)
      if (!state.allocated.has(uid)) state.allocated.set(uid, state.actuated.get(uid) ?? infoOf(pod))
      const isRestored = progress.restore(pod)
      const entry = pending.get(uid)
      const isAsked = isResized(allocatedPod(pod), pod)
      // A waiting resize is retried when there may be room, not at each step of its pod.
      if (isAsked ? entry && entry.generation === (pod.metadata.generation ?? 0) : !entry) return
      if (isAsked) progress.asked(pod)
      await tryAll(isRestored ? 'pods_added' : 'pod_updated', uid)
    },
    conditions: progress.conditions,
    actuated: (podUid, container) => {
      const info = state.actuated.get(podUid)
      return container === undefined ? info?.pod : ownValue(info?.containers, container)
    },
    setActuated: async (podUid, container, resources) => {
      const info = state.actuated.get(podUid) ?? { containers: {} }
      state.actuated.set(
        podUid,
        container === undefined ? { ...info, pod: resources } : { ...info, containers: { ...info.containers, [container]: resources } },
      )
      await save('actuated')
    },
    finished: progress.finished,
    failed: progress.failed,
    forget: async (podUid, because = 'pods_removed') => {
      progress.forget(podUid)
      const had = [state.allocated.delete(podUid), state.actuated.delete(podUid)]
      // What it had is free now.
      if (had.includes(true) && pending.size > 0) await retryAll(because)
    },
    forgetOthers: (isKnown) => {
      for (const entries of [state.allocated, state.actuated]) for (const uid of entries.keys()) if (!isKnown(uid)) entries.delete(uid)
    },
    run: (signal) => fromTimeToTime(context, () => (pending.size > 0 ? retryAll('periodic_retry') : Promise.resolve()), signal),
  }
}

async function fromTimeToTime({ clock }: KubeletContext, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let waitMs = firstRetryMs; !signal.aborted; waitMs = retryMs) {
    await clock.sleep(waitMs, signal).catch(() => {})
    if (!signal.aborted) await work()
  }
}

type Which = 'allocated' | 'actuated'

/** What pods have been given, and what they run with, as remembered. */
async function openState({ host, config }: KubeletContext): Promise<{ state: Record<Which, PodResourcesState>; save(which: Which): Promise<void> }> {
  const file = (name: string) => (host ? checkpointFile(`${config.rootDirectory}/${name}`, host.path(`${config.rootDirectory}/${name}`)) : noCheckpoint())
  const files = { allocated: file('allocated_pods_state'), actuated: file('actuated_pods_state') }
  const state = { allocated: await restore(files.allocated), actuated: await restore(files.actuated) }
  return { state, save: (which) => files[which].write(() => renderPodResources(state[which])) }
}

function withResources(pod: FrozenPod, { containers, pod: whole }: PodResourceInfo): FrozenPod {
  const place = (list: readonly FrozenContainer[] | undefined) =>
    list?.map((container) => ({ ...container, resources: ownValue(containers, container.name) ?? container.resources }))
  const initContainers = place(pod.spec.initContainers)
  const spec = {
    ...pod.spec,
    containers: place(pod.spec.containers) ?? [],
    ...(initContainers ? { initContainers } : {}),
    ...(whole ? { resources: whole } : {}),
  }
  const result = { ...pod, spec } as FrozenPod
  // The same object while nothing differs: most pods are never resized.
  return isResized(result, pod) ? deepFreeze(deepCopy<Pod>(result)) : pod
}

async function restore(file: CheckpointFile): Promise<PodResourcesState> {
  const text = await file.read()
  if (text === undefined) return new Map()
  try {
    return parsePodResources(text)
  } catch (error) {
    const reason = messageOf(error)
    throw new Error(
      `could not restore state from checkpoint: ${reason}, please drain this node and delete pod allocation checkpoint file "${file.path}" before restarting Kubelet`,
    )
  }
}
