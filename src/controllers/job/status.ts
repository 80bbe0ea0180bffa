/**
 * A Job's status, and counting its pods exactly once (L3). Pure. A finished pod's uid goes into status.uncountedTerminatedPods first, then
 * its finalizer goes, then it is a number. Upstream: trackJobStatusAndRemoveFinalizers in pkg/controller/job/job_controller.go (v1.36).
 */
import type { Job, JobCondition, JobStatus } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodActive } from '#api/helpers/pods'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { formatTime } from '#base/time'
import { isPodFailed } from './failures.ts'
import { completionIndex, formatIndexes, isIndexed, validIndex } from './indexes.ts'
import { type Counts, isTracked, type Verdict } from './plan.ts'
import { matchPodFailurePolicy } from './podFailurePolicy.ts'

/** Bounds the status, and the work of one pass over a big job. */
const maxUncountedPods = 500

export interface Tracking {
  /** Counted for good. */
  readonly settled: { readonly succeeded: number; readonly failed: number }
  /** Waiting for their finalizers to go. */
  readonly uncounted: { readonly succeeded: string[]; readonly failed: string[] }
  /** Pods whose finalizers may go once the status is written. */
  readonly release: Frozen<Pod>[]
  /** Results of the failure policy for failed pods that were not handled before. */
  readonly failureActions: string[]
}

/** Which pods are counted now, which wait to be, and which finalizers may go; at most 500 in one pass. */
export function trackPods(job: Frozen<Job>, counts: Counts, verdict: Verdict | undefined): Tracking {
  const before = job.status?.uncountedTerminatedPods ?? {}
  const waiting = new Set([...(before.succeeded ?? []), ...(before.failed ?? [])])
  const tracked = new Map(counts.pods.filter(isTracked).map((pod) => [pod.metadata.uid ?? '', pod]))
  const still = (uids: readonly string[] | undefined) => (uids ?? []).filter((uid) => tracked.has(uid))
  const uncounted = { succeeded: still(before.succeeded), failed: still(before.failed) }
  const settled = {
    succeeded: (job.status?.succeeded ?? 0) + (before.succeeded?.length ?? 0) - uncounted.succeeded.length,
    failed: (job.status?.failed ?? 0) + (before.failed?.length ?? 0) - uncounted.failed.length,
  }
  const release: Frozen<Pod>[] = []
  const failureActions: string[] = []
  for (const [uid, pod] of tracked) {
    if (release.length >= maxUncountedPods) break
    if (!mayGo(job, counts, verdict, pod)) continue
    release.push(pod)
    if (waiting.has(uid)) continue
    if (pod.status?.phase === 'Succeeded') {
      if (!isIndexed(job)) uncounted.succeeded.push(uid)
    } else if (isFailure(job, verdict, pod)) {
      const { action, counts: counted } = matchPodFailurePolicy(job, pod)
      if (action) failureActions.push(action)
      if (counted) uncounted.failed.push(uid)
    }
  }
  return { settled, uncounted, release, failureActions }
}

function mayGo(job: Frozen<Job>, { held }: Counts, verdict: Verdict | undefined, pod: Frozen<Pod>): boolean {
  if (job.metadata.deletionTimestamp || pod.status?.phase === 'Succeeded' || (verdict && !isPodActive(pod))) return true
  return isPodFailed(pod, job) && held.get(completionIndex(pod) ?? -1) !== pod
}

function isFailure(job: Frozen<Job>, verdict: Verdict | undefined, pod: Frozen<Pod>): boolean {
  if (!isPodFailed(pod, job) && verdict?.type !== 'Failed') return false
  return !isIndexed(job) || validIndex(job, pod) !== undefined
}

export interface StatusOptions {
  readonly counts: Counts
  readonly tracking: Tracking
  /** Announced at once, and final when no pod is left to wait for. */
  readonly verdict: Verdict | undefined
  /** Every pod that was asked for has been seen. */
  readonly complete: boolean
  readonly nowMs: number
}

/** The status to write. */
export function jobStatus(job: Frozen<Job>, { counts, tracking, verdict, complete, nowMs }: StatusOptions): JobStatus {
  const now = formatTime(nowMs)
  const { conditions, put } = conditionsOf(job, now)
  const suspended = job.spec.suspend === true
  let startTime = job.status?.startTime
  if (verdict) put(verdict.type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget', 'True', verdict.reason, verdict.message)
  else if (suspended) {
    put('Suspended', 'True', 'JobSuspended', 'Job suspended')
    startTime = undefined
  } else if (findCondition(conditions, 'Suspended')?.status === 'True') put('Suspended', 'False', 'JobResumed', 'Job resumed')
  if (!suspended) startTime ??= now
  const { uncounted, settled, release } = tracking
  const pending = counts.active.length + counts.terminating + uncounted.succeeded.length + uncounted.failed.length + release.length
  const over = verdict && complete && pending === 0
  if (over) put(verdict.type, 'True', verdict.reason, verdict.message)
  const succeeded = isIndexed(job) ? counts.succeededIndexes.size : settled.succeeded
  return {
    ...(conditions.length > 0 ? { conditions } : {}),
    ...(startTime ? { startTime } : {}),
    ...(over && verdict.type === 'Complete' ? { completionTime: now } : {}),
    ...(counts.active.length > 0 ? { active: counts.active.length } : {}),
    ...(succeeded > 0 ? { succeeded } : {}),
    ...(settled.failed > 0 ? { failed: settled.failed } : {}),
    terminating: counts.terminating,
    ready: counts.ready,
    ...(counts.succeededIndexes.size > 0 ? { completedIndexes: formatIndexes(counts.succeededIndexes) } : {}),
    ...(counts.failedIndexes ? { failedIndexes: formatIndexes(counts.failedIndexes) } : {}),
    uncountedTerminatedPods: {
      ...(uncounted.succeeded.length > 0 ? { succeeded: uncounted.succeeded } : {}),
      ...(uncounted.failed.length > 0 ? { failed: uncounted.failed } : {}),
    },
  }
}

function conditionsOf(job: Frozen<Job>, now: string) {
  const conditions: JobCondition[] = (job.status?.conditions ?? []).map((condition) => ({ ...condition }))
  const put = (type: string, status: string, reason: string, message: string) => {
    const there = findCondition(conditions, type)
    if (there?.status === status) return
    const wanted = { type, status, reason, message, lastProbeTime: now, lastTransitionTime: now }
    if (there) Object.assign(there, wanted)
    else conditions.push(wanted)
  }
  return { conditions, put }
}
