/**
 * What a Job has done, and what it lacks (L3). Pure. Pods are counted exactly once: a finished pod's uid goes into
 * status.uncountedTerminatedPods first, then its finalizer goes, then it is a number. Upstream: pkg/controller/job/job_controller.go (v1.36).
 */
import type { Job, JobCondition, JobStatus } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodActive, isPodReady, isPodTerminating } from '#api/helpers/pods'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { formatTime, parseTime } from '#base/time'
import { completionIndex, formatIndexes, parseIndexes } from './indexes.ts'

export const trackingFinalizer = 'batch.kubernetes.io/job-tracking'

type Pods = readonly Frozen<Pod>[]
export interface Verdict {
  readonly type: 'Complete' | 'Failed'
  readonly reason: string
  readonly message: string
}

export const isIndexed = (job: Frozen<Job>): boolean => job.spec.completionMode === 'Indexed'
export const isTracked = (pod: Frozen<Pod>): boolean => pod.metadata.finalizers?.includes(trackingFinalizer) ?? false
export const conditionIsTrue = (job: Frozen<Job>, type: string): boolean => findCondition(job.status?.conditions, type)?.status === 'True'
export const isJobFinished = (job: Frozen<Job>): boolean => conditionIsTrue(job, 'Complete') || conditionIsTrue(job, 'Failed')

/** A pod on its way out counts as failed at once, unless replacements must wait for its end. */
function isPodFailed(pod: Frozen<Pod>, job: Frozen<Job>): boolean {
  const { phase } = pod.status ?? {}
  if (phase === 'Failed') return true
  if (!pod.metadata.deletionTimestamp) return false
  return job.spec.podReplacementPolicy === 'Failed' ? phase === 'Pending' : phase !== 'Succeeded'
}

export interface Counts {
  readonly active: Frozen<Pod>[]
  readonly ready: number
  readonly terminating: number
  readonly succeeded: number
  readonly failed: number
  readonly completedIndexes: ReadonlySet<number>
  /** For the status: counted for good, and waiting for their finalizers to go. */
  readonly settled: { readonly succeeded: number; readonly failed: number }
  readonly uncounted: { readonly succeeded: string[]; readonly failed: string[] }
  /** Pods whose finalizers may go once the status is written. */
  readonly release: Frozen<Pod>[]
}

/** What a Job's pods amount to: active, ready, and those that ended and are not counted yet. */
export function countPods(job: Frozen<Job>, pods: Pods): Counts {
  const { status } = job
  const completedIndexes = parseIndexes(isIndexed(job) ? status?.completedIndexes : undefined, job.spec.completions ?? 0)
  const before = status?.uncountedTerminatedPods ?? {}
  const waiting = new Set([...(before.succeeded ?? []), ...(before.failed ?? [])])
  const tracked = new Map(pods.filter(isTracked).map((pod) => [pod.metadata.uid ?? '', pod]))
  const still = (uids: readonly string[] | undefined) => (uids ?? []).filter((uid) => tracked.has(uid))
  const uncounted = { succeeded: still(before.succeeded), failed: still(before.failed) }
  const settled = {
    succeeded: (status?.succeeded ?? 0) + (before.succeeded?.length ?? 0) - uncounted.succeeded.length,
    failed: (status?.failed ?? 0) + (before.failed?.length ?? 0) - uncounted.failed.length,
  }
  const release: Frozen<Pod>[] = []
  for (const [uid, pod] of tracked) {
    const succeeded = pod.status?.phase === 'Succeeded'
    if (!succeeded && !isPodFailed(pod, job)) continue
    release.push(pod)
    if (waiting.has(uid)) continue
    if (!succeeded) uncounted.failed.push(uid)
    else if (!isIndexed(job)) uncounted.succeeded.push(uid)
    else {
      const index = completionIndex(pod)
      if (index !== undefined && index < (job.spec.completions ?? 0)) completedIndexes.add(index)
    }
  }
  const active = pods.filter(isPodActive)
  return {
    active,
    ready: active.filter(isPodReady).length,
    terminating: pods.filter(isPodTerminating).length,
    succeeded: isIndexed(job) ? completedIndexes.size : settled.succeeded + uncounted.succeeded.length,
    failed: settled.failed + uncounted.failed.length,
    completedIndexes,
    settled,
    uncounted,
    release,
  }
}

/** Whether the job is over, and how; undefined while it goes on. */
export function verdictOf(job: Frozen<Job>, counts: Counts, nowMs: number): Verdict | undefined {
  const decided = findCondition(job.status?.conditions, 'FailureTarget')
  if (decided?.status === 'True') return { type: 'Failed', reason: decided.reason ?? '', message: decided.message ?? '' }
  const met = findCondition(job.status?.conditions, 'SuccessCriteriaMet')
  if (met?.status === 'True') return { type: 'Complete', reason: met.reason ?? '', message: met.message ?? '' }
  const limit = job.spec.backoffLimit ?? 6
  const deadlineMs = msUntilDeadline(job, nowMs)
  if (counts.failed > limit || restartsExceed(job, counts.active, limit)) {
    return { type: 'Failed', reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
  }
  if (deadlineMs !== undefined && deadlineMs <= 0) {
    return { type: 'Failed', reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
  }
  const { completions } = job.spec
  // Without completions any success ends the job, once the others have ended, too.
  const complete = completions === undefined ? counts.succeeded > 0 && counts.active.length === 0 : counts.succeeded >= completions
  return complete ? { type: 'Complete', reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' } : undefined
}

function restartsExceed(job: Frozen<Job>, active: Pods, limit: number): boolean {
  if (job.spec.template.spec?.restartPolicy !== 'OnFailure') return false
  const restarts = active
    .flatMap(({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])])
    .reduce((sum, { restartCount }) => sum + restartCount, 0)
  return limit === 0 ? restarts > 0 : restarts >= limit
}

export function msUntilDeadline(job: Frozen<Job>, nowMs: number): number | undefined {
  const startMs = parseTime(job.status?.startTime ?? '')
  const seconds = job.spec.activeDeadlineSeconds
  if (seconds === undefined || startMs === undefined || job.spec.suspend) return undefined
  return startMs + seconds * 1000 - nowMs
}

/** How many pods should run now. */
export function wantedActive(job: Frozen<Job>, counts: Counts): number {
  const parallelism = job.spec.parallelism ?? 1
  const { completions } = job.spec
  if (completions === undefined) return counts.succeeded > 0 ? Math.min(counts.active.length, parallelism) : parallelism
  return Math.min(Math.max(0, completions - counts.succeeded), parallelism)
}

/** The lowest indexes that nobody works on, at most `count`. */
export function nextIndexes(job: Frozen<Job>, counts: Counts, pods: Pods, count: number): number[] {
  const busy = new Set<number | undefined>(pods.filter((pod) => isPodActive(pod) || (isPodTerminating(pod) && !isPodFailed(pod, job))).map(completionIndex))
  const free: number[] = []
  for (let index = 0; index < (job.spec.completions ?? 0) && free.length < count; index++) {
    if (!counts.completedIndexes.has(index) && !busy.has(index)) free.push(index)
  }
  return free
}

const backoffBaseMs = 10_000
const backoffMaxMs = 600_000

/** How long to wait before the next pod, after failures in a row: 10 s, 20 s, … 10 min from the last. */
export function msUntilRetry(pods: Pods, nowMs: number): number {
  const endMs = (pod: Frozen<Pod>) => {
    const ends = (pod.status?.containerStatuses ?? []).flatMap(({ state }) => parseTime(state?.terminated?.finishedAt ?? '') ?? [])
    return ends.length > 0
      ? Math.max(...ends)
      : (parseTime(pod.metadata.deletionTimestamp ?? pod.status?.startTime ?? pod.metadata.creationTimestamp ?? '') ?? nowMs)
  }
  const lastSuccessMs = Math.max(0, ...pods.filter(({ status }) => status?.phase === 'Succeeded').map(endMs))
  const failures = pods
    .filter(({ status }) => status?.phase === 'Failed')
    .map(endMs)
    .filter((ms) => ms > lastSuccessMs)
  if (failures.length === 0) return 0
  const waitMs = Math.min(backoffBaseMs * 2 ** (failures.length - 1), backoffMaxMs)
  return Math.max(0, Math.max(...failures) + waitMs - nowMs)
}

/** The status to write. `verdict`: announced at once, and final when no pod is left to wait for. */
export function jobStatus(job: Frozen<Job>, counts: Counts, verdict: Verdict | undefined, nowMs: number): JobStatus {
  const now = formatTime(nowMs)
  const conditions: JobCondition[] = (job.status?.conditions ?? []).map((condition) => ({ ...condition }))
  const put = (type: string, status: string, reason: string, message: string) => {
    const there = findCondition(conditions, type)
    if (there?.status === status) return
    const wanted = { type, status, reason, message, lastProbeTime: now, lastTransitionTime: now }
    if (there) Object.assign(there, wanted)
    else conditions.push(wanted)
  }
  const suspended = job.spec.suspend === true
  let startTime = job.status?.startTime
  if (verdict) put(verdict.type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget', 'True', verdict.reason, verdict.message)
  else if (suspended) {
    put('Suspended', 'True', 'JobSuspended', 'Job suspended')
    startTime = undefined
  } else if (findCondition(conditions, 'Suspended')?.status === 'True') put('Suspended', 'False', 'JobResumed', 'Job resumed')
  if (!suspended) startTime ??= now
  const { uncounted, settled } = counts
  const over = verdict && counts.active.length + counts.terminating + uncounted.succeeded.length + uncounted.failed.length + counts.release.length === 0
  if (over) put(verdict.type, 'True', verdict.reason, verdict.message)
  const succeeded = isIndexed(job) ? counts.completedIndexes.size : settled.succeeded
  return {
    ...(conditions.length > 0 ? { conditions } : {}),
    ...(startTime ? { startTime } : {}),
    ...(over && verdict.type === 'Complete' ? { completionTime: now } : {}),
    ...(counts.active.length > 0 ? { active: counts.active.length } : {}),
    ...(succeeded > 0 ? { succeeded } : {}),
    ...(settled.failed > 0 ? { failed: settled.failed } : {}),
    terminating: counts.terminating,
    ready: counts.ready,
    ...(counts.completedIndexes.size > 0 ? { completedIndexes: formatIndexes(counts.completedIndexes) } : {}),
    uncountedTerminatedPods: {
      ...(uncounted.succeeded.length > 0 ? { succeeded: uncounted.succeeded } : {}),
      ...(uncounted.failed.length > 0 ? { failed: uncounted.failed } : {}),
    },
  }
}
