/**
 * What a Job has done, whether it is over, and what it lacks (L3). Pure. status.ts counts its pods exactly once and writes it down.
 * Upstream: pkg/controller/job/job_controller.go (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodActive, isPodReady, isPodTerminating } from '#api/helpers/pods'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { append } from '#base/extremes'
import { parseTime } from '#base/time'
import { podsToDelete } from '../shared/deletionRank.ts'
import { failsIndex, hasLimitPerIndex, isPodFailed, onlyReplacesFailed, podsAwaitingReplacement } from './failures.ts'
import { completionIndex, IndexSet, isIndexed, validIndex } from './indexes.ts'
import { matchPodFailurePolicy } from './podFailurePolicy.ts'
import { matchSuccessPolicy } from './successPolicy.ts'

export const trackingFinalizer = 'batch.kubernetes.io/job-tracking'

type Pods = readonly Frozen<Pod>[]
export interface Verdict {
  readonly type: 'Complete' | 'Failed'
  readonly reason: string
  readonly message: string
}

export const isTracked = (pod: Frozen<Pod>): boolean => pod.metadata.finalizers?.includes(trackingFinalizer) ?? false
export const conditionIsTrue = (job: Frozen<Job>, type: string): boolean => findCondition(job.status?.conditions, type)?.status === 'True'
export const isJobFinished = (job: Frozen<Job>): boolean => conditionIsTrue(job, 'Complete') || conditionIsTrue(job, 'Failed')

export interface Counts {
  readonly pods: Pods
  readonly active: Pods
  readonly ready: number
  readonly terminating: number
  /** All that have ended, those included that the status does not count yet. */
  readonly succeeded: number
  readonly failed: number
  readonly succeededIndexes: IndexSet
  /** Of jobs with a limit per index only. */
  readonly failedIndexes: IndexSet | undefined
  /** Failed pods by index that stay until their replacement is there. */
  readonly held: ReadonlyMap<number, Frozen<Pod>>
}

/** What a Job's pods amount to: active, ready, and those that ended and are not counted yet. */
export function countPods(job: Frozen<Job>, pods: Pods): Counts {
  const { status } = job
  const completions = job.spec.completions ?? 0
  const { succeeded = [], failed = [] } = status?.uncountedTerminatedPods ?? {}
  const waiting = new Set([...succeeded, ...failed])
  const tracked = pods.filter(isTracked)
  const fresh = tracked.filter((pod) => !waiting.has(pod.metadata.uid ?? '') && (!isIndexed(job) || validIndex(job, pod) !== undefined))
  const active = pods.filter(isPodActive)
  const indexes = indexesOf(job, tracked, completions)
  const busy = new Set(active.map(completionIndex))
  const settled = (index: number) => indexes.succeeded.has(index) || (indexes.failed?.has(index) ?? false) || busy.has(index)
  return {
    pods,
    active,
    ready: active.filter(isPodReady).length,
    terminating: pods.filter(isPodTerminating).length,
    succeeded: isIndexed(job)
      ? indexes.succeeded.size
      : (status?.succeeded ?? 0) + succeeded.length + fresh.filter((pod) => pod.status?.phase === 'Succeeded').length,
    failed: (status?.failed ?? 0) + failed.length + fresh.filter((pod) => isPodFailed(pod, job) && matchPodFailurePolicy(job, pod).counts).length,
    succeededIndexes: indexes.succeeded,
    failedIndexes: indexes.failed,
    held: hasLimitPerIndex(job) ? podsAwaitingReplacement(job, tracked, settled) : new Map(),
  }
}

function indexesOf(job: Frozen<Job>, tracked: Pods, completions: number) {
  if (!isIndexed(job)) return { succeeded: new IndexSet([]), failed: undefined }
  const hasLimit = hasLimitPerIndex(job)
  const succeeded: number[] = []
  const failed: number[] = []
  for (const pod of tracked) {
    const index = validIndex(job, pod)
    if (index === undefined) continue
    if (pod.status?.phase === 'Succeeded') succeeded.push(index)
    else if (hasLimit && failsIndex(job, pod)) failed.push(index)
  }
  return {
    succeeded: IndexSet.parse(job.status?.completedIndexes, completions, succeeded),
    failed: hasLimit ? IndexSet.parse(job.status?.failedIndexes, completions, failed) : undefined,
  }
}

/** The result of the job; undefined while it runs. A condition that was announced stays. */
export function verdictOf(job: Frozen<Job>, counts: Counts, nowMs: number): Verdict | undefined {
  const met = findCondition(job.status?.conditions, 'SuccessCriteriaMet')
  if (met?.status === 'True') return { type: 'Complete', reason: met.reason ?? '', message: met.message ?? '' }
  const decided = findCondition(job.status?.conditions, 'FailureTarget')
  if (decided?.status === 'True') return failed(decided.reason ?? '', decided.message ?? '')
  return failureOf(job, counts, nowMs) ?? indexVerdict(job, counts) ?? completionOf(job, counts)
}

const failed = (reason: string, message: string): Verdict => ({ type: 'Failed', reason, message })

function failureOf(job: Frozen<Job>, counts: Counts, nowMs: number): Verdict | undefined {
  if (job.spec.podFailurePolicy) {
    for (const pod of counts.pods) {
      const message = isPodFailed(pod, job) ? matchPodFailurePolicy(job, pod).message : undefined
      if (message !== undefined) return failed('PodFailurePolicy', message)
    }
  }
  const limit = job.spec.backoffLimit ?? 6
  if (counts.failed > limit || restartsExceed(job, counts.active, limit)) {
    return failed('BackoffLimitExceeded', 'Job has reached the specified backoff limit')
  }
  const deadlineMs = msUntilDeadline(job, nowMs)
  return deadlineMs !== undefined && deadlineMs <= 0 ? failed('DeadlineExceeded', 'Job was active longer than specified deadline') : undefined
}

function indexVerdict(job: Frozen<Job>, { failedIndexes, succeededIndexes }: Counts): Verdict | undefined {
  if (!isIndexed(job)) return undefined
  const { maxFailedIndexes, completions = 0 } = job.spec
  const failures = failedIndexes?.size ?? 0
  if (failures > 0 && maxFailedIndexes !== undefined && failures > maxFailedIndexes) {
    return failed('MaxFailedIndexesExceeded', 'Job has exceeded the specified maximal number of failed indexes')
  }
  if (failures > 0 && failures + succeededIndexes.size >= completions) return failed('FailedIndexes', 'Job has failed indexes')
  const message = matchSuccessPolicy(job, succeededIndexes)
  return message === undefined ? undefined : { type: 'Complete', reason: 'SuccessPolicy', message }
}

function completionOf({ spec: { completions } }: Frozen<Job>, { succeeded, active }: Counts): Verdict | undefined {
  // Without completions any success ends the job, once the others have ended, too.
  const enough = completions === undefined ? succeeded > 0 : succeeded >= completions
  return enough && active.length === 0 ? { type: 'Complete', reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' } : undefined
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
  const { completions, parallelism = 1 } = job.spec
  if (completions === undefined) return counts.succeeded > 0 ? counts.active.length : parallelism
  return Math.min(Math.max(0, completions - counts.succeeded), parallelism)
}

/** The lowest indexes without an active pod, at most `count`. */
export function nextIndexes(job: Frozen<Job>, counts: Counts, count: number): number[] {
  const working = onlyReplacesFailed(job) ? [...counts.active, ...counts.pods.filter(isPodTerminating)] : counts.active
  const busy = new Set<number | undefined>(working.map(completionIndex))
  const free: number[] = []
  const { succeededIndexes, failedIndexes } = counts
  for (let index = 0; index < (job.spec.completions ?? 0) && free.length < count; ) {
    const next = succeededIndexes.nextOutside(index)
    const open = failedIndexes?.nextOutside(next) ?? next
    if (open > index) {
      index = open
      continue
    }
    if (!busy.has(index)) free.push(index)
    index++
  }
  return free
}

/** The active pods to remove, at least `count`. For an indexed job, pods with a duplicate or invalid index are removed first. */
export function surplusPods(job: Frozen<Job>, active: Pods, count: number, nowMs: number): Frozen<Pod>[] {
  const surplus: Frozen<Pod>[] = []
  let rest = active
  if (isIndexed(job)) {
    const byIndex = new Map<number, Frozen<Pod>[]>()
    for (const pod of active) {
      const index = validIndex(job, pod)
      if (index === undefined) surplus.push(pod)
      else {
        const same = byIndex.get(index)
        if (same) same.push(pod)
        else byIndex.set(index, [pod])
      }
    }
    for (const same of byIndex.values()) append(surplus, podsToDelete(same, same, same.length - 1, nowMs))
    const leaving = new Set(surplus)
    rest = active.filter((pod) => !leaving.has(pod))
  }
  return [...surplus, ...podsToDelete(rest, rest, Math.max(0, count - surplus.length), nowMs)]
}
