/** Metrics of jobs (L3). Upstream: pkg/controller/job/metrics (v1.36). */
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { exponentialBuckets, type Metrics } from '#base/metrics'
import { parseIntervals } from './indexes.ts'
import { isTracked } from './plan.ts'

/** What a sync of a job came to. */
export type SyncAction = 'reconciling' | 'tracking' | 'pods_created' | 'pods_deleted'
export type CreationReason = 'new' | 'recreate_terminating_or_failed' | 'recreate_failed'

export interface JobMetrics {
  synced(job: Frozen<Job>, action: SyncAction, succeeded: boolean, seconds: number): void
  /** The status that was written: pods that are counted for good, the job's end. */
  written(before: Frozen<Job>, after: Frozen<Job>): void
  /** Counts a failed pod by the action that the failure policy chose. */
  failureHandled(action: string): void
  created(reason: CreationReason, succeeded: number, failed: number): void
  /** A pod changed; undefined: it was not there, or is gone. */
  pod(before: Frozen<Pod> | undefined, after: Frozen<Pod> | undefined): void
  foreign(controller: string): void
}

const mode = ({ spec }: Frozen<Job>) => spec.completionMode ?? 'NonIndexed'
const isHeld = (pod: Frozen<Pod> | undefined) => pod !== undefined && isPodTerminal(pod) && isTracked(pod)

function indexCount({ spec, status }: Frozen<Job>, field: 'completedIndexes' | 'failedIndexes'): number {
  return parseIntervals(status?.[field], spec.completions ?? 0).reduce((sum, [first, last]) => sum + last - first + 1, 0)
}

export function createJobMetrics(metrics: Metrics): JobMetrics {
  const counter = (name: string, help: string, labels: readonly string[]) => metrics.counter({ name: `job_controller_${name}`, help, labels })
  const syncLabels = ['completion_mode', 'result', 'action']
  const syncs = counter('job_syncs_total', 'The number of job syncs', syncLabels)
  const times = metrics.histogram({
    name: 'job_controller_job_sync_duration_seconds',
    help: 'How long one look at a job took, in seconds.',
    labels: syncLabels,
    buckets: exponentialBuckets(0.004, 2, 15),
  })
  const finished = counter('jobs_finished_total', 'How many jobs have ended, by how.', ['completion_mode', 'result', 'reason'])
  const podsFinished = counter('job_pods_finished_total', 'How many pods that have ended were counted.', ['completion_mode', 'result'])
  const held = counter(
    'terminated_pods_tracking_finalizer_total',
    'The number of terminated pods (phase=Failed|Succeeded) that have the finalizer batch.kubernetes.io/job-tracking. The event label can be "add" or "delete".',
    ['event'],
  )
  const created = counter('job_pods_creation_total', 'The number of Pods created by the Job controller labelled with a reason for the Pod creation.', [
    'reason',
    'status',
  ])
  const handled = counter('pod_failures_handled_by_failure_policy_total', 'Failed pods that a rule of the failure policy matched, by its action.', ['action'])
  const finishedIndexes = counter('job_finished_indexes_total', 'Indexes that have come to an end, by how.', ['status', 'backoffLimit'])
  const foreign = counter('jobs_by_external_controller_total', 'Jobs that an external controller manages.', ['controller_name'])

  return {
    synced(job, action, succeeded, seconds) {
      const labels = { completion_mode: mode(job), result: succeeded ? 'success' : 'error', action }
      syncs.inc(labels)
      times.observe(seconds, labels)
    },
    written(before, after) {
      for (const result of ['succeeded', 'failed'] as const) {
        const count = (after.status?.[result] ?? 0) - (before.status?.[result] ?? 0)
        if (count > 0) podsFinished.inc({ completion_mode: mode(after), result }, count)
      }
      const backoffLimit = after.spec.backoffLimitPerIndex === undefined ? 'global' : 'perIndex'
      for (const [field, status] of [
        ['completedIndexes', 'succeeded'],
        ['failedIndexes', 'failed'],
      ] as const) {
        if (before.status?.[field] === after.status?.[field]) continue
        const count = indexCount(after, field) - indexCount(before, field)
        if (count > 0) finishedIndexes.inc({ status, backoffLimit }, count)
      }
      for (const [type, result] of [
        ['Complete', 'succeeded'],
        ['Failed', 'failed'],
      ] as const) {
        const end = findCondition(after.status?.conditions ?? [], type)
        if (end?.status !== 'True' || findCondition(before.status?.conditions ?? [], type)?.status === 'True') continue
        finished.inc({ completion_mode: mode(after), result, reason: end.reason ?? '' })
      }
    },
    failureHandled: (action) => handled.inc({ action }),
    created(reason, succeeded, failed) {
      if (succeeded > 0) created.inc({ reason, status: 'succeeded' }, succeeded)
      if (failed > 0) created.inc({ reason, status: 'failed' }, failed)
    },
    pod(before, after) {
      if (!isHeld(before) && isHeld(after)) held.inc({ event: 'add' })
      if (isHeld(before) && !isHeld(after)) held.inc({ event: 'delete' })
    },
    foreign: (controller) => foreign.inc({ controller_name: controller }),
  }
}
