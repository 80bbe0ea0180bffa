/**
 * Which pods of a job have failed, when, and how long their replacements wait (L3). Pure. With backoffLimitPerIndex each index has its own
 * count, which its pods hand on in annotations. Upstream: pkg/controller/job/backoff_utils.go and indexed_job_utils.go (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { ContainerStatus, Pod } from '#api/gen/types/core.v1'
import { podCondition } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { greatest, least } from '#base/extremes'
import { parseTime } from '#base/time'
import { validIndex } from './indexes.ts'
import { matchPodFailurePolicy } from './podFailurePolicy.ts'

const failureCountAnnotation = 'batch.kubernetes.io/job-index-failure-count'
const ignoredFailureCountAnnotation = 'batch.kubernetes.io/job-index-ignored-failure-count'

type Pods = readonly Frozen<Pod>[]

/** Replacements wait until a pod has truly ended; a failure policy needs its final state, too. */
export const onlyReplacesFailed = (job: Frozen<Job>): boolean => job.spec.podReplacementPolicy === 'Failed' || job.spec.podFailurePolicy !== undefined

export const hasLimitPerIndex = (job: Frozen<Job>): boolean => job.spec.completionMode === 'Indexed' && job.spec.backoffLimitPerIndex !== undefined

/** A pod that is being deleted counts as failed at once, unless its replacement must wait for its end. */
export function isPodFailed(pod: Frozen<Pod>, job: Frozen<Job>): boolean {
  const { phase } = pod.status ?? {}
  if (phase === 'Failed') return true
  return !onlyReplacesFailed(job) && pod.metadata.deletionTimestamp !== undefined && phase !== 'Succeeded'
}

/** A failure beyond what the pod's index is granted, or one that the failure policy does not forgive. */
export function failsIndex(job: Frozen<Job>, pod: Frozen<Pod>): boolean {
  if (!isPodFailed(pod, job)) return false
  const { action, counts } = matchPodFailurePolicy(job, pod)
  return action === 'FailIndex' || (counts && countOf(pod, failureCountAnnotation) >= (job.spec.backoffLimitPerIndex ?? 0))
}

/**
 * Failed pods whose finalizer stays until their index has its next pod, which takes over their counts: the latest of each index that has
 * neither ended nor an active pod.
 */
export function podsAwaitingReplacement(job: Frozen<Job>, tracked: Pods, settled: (index: number) => boolean): Map<number, Frozen<Pod>> {
  const held = new Map<number, Frozen<Pod>>()
  for (const pod of tracked) {
    const index = validIndex(job, pod)
    if (index === undefined || settled(index) || !isPodFailed(pod, job)) continue
    const other = held.get(index)
    if (!other || (failureCount(other) <= failureCount(pod) && finishedMs(other) <= finishedMs(pod))) held.set(index, pod)
  }
  return held
}

/** The counts that a new pod carries on from the failed one that it replaces. */
export function failureAnnotations(job: Frozen<Job>, replaced: Frozen<Pod> | undefined): Record<string, string> {
  if (!replaced) return { [failureCountAnnotation]: '0' }
  const counted = matchPodFailurePolicy(job, replaced).counts
  const failures = countOf(replaced, failureCountAnnotation) + (counted ? 1 : 0)
  const ignored = countOf(replaced, ignoredFailureCountAnnotation) + (counted ? 0 : 1)
  return { [failureCountAnnotation]: String(failures), ...(ignored > 0 ? { [ignoredFailureCountAnnotation]: String(ignored) } : {}) }
}

function failureCount(pod: Frozen<Pod>): number {
  return countOf(pod, failureCountAnnotation) + countOf(pod, ignoredFailureCountAnnotation)
}

/** Every client that may write pods may write these annotations: a value that is not a count is 0. */
function countOf(pod: Frozen<Pod>, annotation: string): number {
  const text = ownValue(pod.metadata.annotations, annotation) ?? ''
  const count = /^\d+$/.test(text) ? Number(text) : 0
  return count <= 0x7f_ff_ff_ff ? count : 0
}

const backoffBaseMs = 10_000
const backoffMaxMs = 600_000

/** 10 s, 20 s, 40 s, … 10 min from the last of so many failures in a row. */
function msUntilNextTry(failures: number, lastFailureMs: number, nowMs: number): number {
  return failures === 0 ? 0 : Math.max(0, lastFailureMs + Math.min(backoffBaseMs * 2 ** (failures - 1), backoffMaxMs) - nowMs)
}

/** How long to wait before the job's next pod, after failures since its last success. */
export function msUntilRetry(pods: Pods, nowMs: number): number {
  const ended = (phase: string) => pods.filter(({ status }) => status?.phase === phase).map(finishedMs)
  const lastSuccessMs = greatest(ended('Succeeded'), 0)
  const failures = ended('Failed').filter((ms) => ms > lastSuccessMs)
  return msUntilNextTry(failures.length, greatest(failures), nowMs)
}

/** Which of `indexes` may have their next pod now, and how long until another may. */
export function dueIndexes(indexes: readonly number[], held: ReadonlyMap<number, Frozen<Pod>>, nowMs: number) {
  const waits = indexes.map((index) => {
    const failed = held.get(index)
    return failed ? msUntilNextTry(failureCount(failed) + 1, finishedMs(failed), nowMs) : 0
  })
  const waiting = waits.filter((ms) => ms > 0)
  return { due: indexes.filter((_, i) => waits[i] === 0), nextMs: waiting.length > 0 ? least(waiting) : undefined }
}

/** When a pod ended: by its containers, else by its readiness, else by its deletion. */
function finishedMs(pod: Frozen<Pod>): number {
  const sidecars = new Set((pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name))
  const statuses = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name))]
  const ends = statuses.map(({ state }: Frozen<ContainerStatus>) => parseTime(state?.terminated?.finishedAt ?? ''))
  if (ends.length > 0 && ends.every((ms) => ms !== undefined)) return greatest(ends)
  const ready = podCondition(pod, 'Ready')
  const unreadyMs = ready?.status === 'False' ? parseTime(ready.lastTransitionTime ?? '') : undefined
  const deletedMs = parseTime(pod.metadata.deletionTimestamp ?? '')
  if (unreadyMs !== undefined) return unreadyMs
  if (deletedMs !== undefined) return deletedMs - (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000
  return parseTime(pod.metadata.creationTimestamp ?? '') ?? 0
}
