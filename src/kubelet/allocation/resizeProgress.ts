/**
 * Reports pending resizes and those in progress (L3): conditions with their observed generation, and an event when a resize begins, changes
 * or ends. Conditions that an earlier kubelet reported stay valid and are not reported again.
 * Upstream: kubelet/status/status_manager.go, kubelet/events/resize.go (v1.36).
 */
import { parseTime } from '#base/time'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { ConditionDraft } from '../core/podConditions.ts'
import { podReference } from '../core/podReference.ts'
import { type ResizeRefusal, resizeMessage } from './resize.ts'
import { createResizeMetrics } from './resizeMetrics.ts'

/** A resize that was asked for and is not given. */
export interface PendingResize {
  readonly sinceMs: number
  /** Generation of the pod when it requested the resize; undefined: the request was made to an earlier kubelet. */
  readonly generation?: number | undefined
  readonly condition?: ConditionDraft | undefined
}

export interface ResizeProgress {
  readonly pending: ReadonlyMap<string, PendingResize>
  /** Restores the conditions that an earlier kubelet reported, when the pod is seen for the first time. Returns true for a pending resize. */
  restore(pod: FrozenPod): boolean
  /** The pod asks for something else now. */
  asked(pod: FrozenPod): void
  /** The resize is refused. Returns whether the condition changed. */
  refused(pod: FrozenPod, refusal: ResizeRefusal): boolean
  /** The pod requests its current allocation again. Returns whether a condition was removed. */
  takenBack(podUid: string): boolean
  /** @param retryTrigger what has made room for it, if it had to wait */
  started(pod: FrozenPod, retryTrigger: string): void
  finished(pod: FrozenPod): void
  failed(pod: FrozenPod, message: string): void
  conditions(podUid: string): ConditionDraft[]
  forget(podUid: string): void
  /** Brings the numbers of waiting resizes and those under way up to date. */
  count(): void
}

const uidOf = (pod: FrozenPod) => pod.metadata.uid ?? ''
const generationOf = (pod: FrozenPod) => pod.metadata.generation ?? 0

export function createResizeProgress({ metrics, clock, recorder }: Pick<KubeletContext, 'metrics' | 'clock' | 'recorder'>): ResizeProgress {
  const pending = new Map<string, PendingResize>()
  const inProgress = new Map<string, ConditionDraft>()
  const seen = new Set<string>()
  const counted = createResizeMetrics(metrics)
  const reasons = () => [...pending.values()].map(({ condition }) => condition?.reason)
  const count = () => counted.resizeCounts(reasons(), inProgress.size)
  const event = (pod: FrozenPod, type: 'Normal' | 'Warning', reason: string, message: string) => recorder.event(podReference(pod), type, reason, message)
  return {
    pending,
    count,
    restore: (pod) => {
      const uid = uidOf(pod)
      if (seen.has(uid)) return false
      seen.add(uid)
      for (const { type, reason, message, observedGeneration = 0, lastTransitionTime } of pod.status?.conditions ?? []) {
        const condition: ConditionDraft = { type, status: 'True', ...(reason ? { reason } : {}), ...(message ? { message } : {}), observedGeneration }
        if (type === 'PodResizeInProgress') inProgress.set(uid, condition)
        if (type === 'PodResizePending') pending.set(uid, { sinceMs: parseTime(lastTransitionTime ?? '') ?? clock.now(), condition })
      }
      return pending.has(uid)
    },
    asked: (pod) => {
      const before = pending.get(uidOf(pod))
      pending.set(uidOf(pod), { sinceMs: before?.sinceMs ?? clock.now(), condition: before?.condition, generation: generationOf(pod) })
    },
    refused: (pod, refusal) => {
      const { reason, message } = refusal
      const [generation, before] = [generationOf(pod), pending.get(uidOf(pod))]
      const condition: ConditionDraft = { type: 'PodResizePending', status: 'True', reason, message, observedGeneration: generation }
      pending.set(uidOf(pod), { sinceMs: before?.sinceMs ?? clock.now(), generation, condition })
      if (refusal.reason === 'Infeasible') counted.infeasible.inc({ reason_detail: refusal.detail })
      const isChange = before?.condition?.observedGeneration !== generation || before.condition.reason !== reason
      if (isChange) event(pod, 'Warning', `Resize${reason}`, resizeMessage(`Pod resize ${reason}`, pod, generation, message))
      return isChange || before?.condition?.message !== message
    },
    takenBack: (podUid) => {
      const before = pending.get(podUid)
      pending.delete(podUid)
      return before?.condition !== undefined
    },
    started: (pod, retry_trigger) => {
      const uid = uidOf(pod)
      if (pending.get(uid)?.condition?.reason === 'Deferred') counted.deferredAccepted.inc({ retry_trigger })
      pending.delete(uid)
      // Whatever went wrong with an earlier one is over.
      inProgress.set(uid, { type: 'PodResizeInProgress', status: 'True', observedGeneration: generationOf(pod) })
      event(pod, 'Normal', 'ResizeStarted', resizeMessage('Pod resize started', pod, generationOf(pod)))
    },
    finished: (pod) => {
      const condition = inProgress.get(uidOf(pod))
      if (!condition) return
      inProgress.delete(uidOf(pod))
      count()
      event(pod, 'Normal', 'ResizeCompleted', resizeMessage('Pod resize completed', pod, condition.observedGeneration ?? 0))
    },
    failed: (pod, message) => {
      const before = inProgress.get(uidOf(pod))
      const observedGeneration = before?.observedGeneration ?? generationOf(pod)
      inProgress.set(uidOf(pod), { type: 'PodResizeInProgress', status: 'True', reason: 'Error', message, observedGeneration })
      count()
      if (before?.message !== message) event(pod, 'Warning', 'ResizeError', resizeMessage('Pod resize error', pod, observedGeneration, message))
    },
    conditions: (podUid) => [pending.get(podUid)?.condition, inProgress.get(podUid)].filter((condition) => condition !== undefined),
    forget: (podUid) => {
      pending.delete(podUid)
      inProgress.delete(podUid)
      seen.delete(podUid)
      count()
    },
  }
}
