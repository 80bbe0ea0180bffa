/**
 * The list of active jobs in a CronJob's status (L3): ended and deleted jobs are removed from it. cronJob.ts writes the status.
 * Upstream: the first half of syncCronJob in pkg/controller/cronjob/cronjob_controllerv2.go (v1.36).
 */
import type { CronJob, CronJobStatus, Job } from '#api/gen/types/batch.v1'
import type { ObjectReference } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { cronJobs, jobs } from '#client/builtIn'
import type { Client } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import { conditionIsTrue, isJobFinished } from '../job/plan.ts'
import { timeOf } from './schedule.ts'

export interface ActiveJobs {
  /** The CronJob with the jobs that it is known to have started: as cached, or fresh when there are others. */
  withKnownJobs(cached: Frozen<CronJob>, owned: readonly Frozen<Job>[], signal: AbortSignal): Promise<Frozen<CronJob>>
  /** Brings `status` up to date with the jobs. */
  settle(cron: Frozen<CronJob>, owned: readonly Frozen<Job>[], status: CronJobStatus, signal: AbortSignal): Promise<void>
}

export function createActiveJobs(client: Client, events: EventRecorder): ActiveJobs {
  return { withKnownJobs, settle }

  /** A job that runs and is on no list is one that the cache lags behind, or one whose start was never written down. */
  async function withKnownJobs(cached: Frozen<CronJob>, owned: readonly Frozen<Job>[], signal: AbortSignal): Promise<Frozen<CronJob>> {
    const unknown = (cron: Frozen<CronJob>) => owned.filter((job) => !isJobFinished(job) && !cron.status?.active?.some(({ uid }) => uid === job.metadata.uid))
    if (unknown(cached).length === 0) return cached
    const { namespace, name = '', uid } = cached.metadata
    const fresh = await client
      .of(cronJobs)
      .get({ namespace, name }, { signal })
      .catch((error: unknown) => {
        if (!isStatus(error, 'NotFound')) throw error
      })
    if (fresh?.metadata.uid !== uid || !fresh) return cached
    for (const { metadata } of unknown(fresh)) {
      events.event(cached, 'Warning', 'UnexpectedJob', `Saw a job that the controller did not create or forgot: ${metadata.name}`)
    }
    return fresh
  }

  async function settle(cron: Frozen<CronJob>, owned: readonly Frozen<Job>[], status: CronJobStatus, signal: AbortSignal): Promise<void> {
    const byUid = new Map(owned.map((job) => [job.metadata.uid, job]))
    const active: ObjectReference[] = []
    for (const reference of status.active ?? []) {
      const job = byUid.get(reference.uid)
      if (!job) {
        // The cache may not show it yet.
        if (await isThere(reference, signal)) active.push(reference)
        else events.event(cron, 'Normal', 'MissingJob', `Active job went missing: ${reference.name}`)
      } else if (!isJobFinished(job)) active.push(reference)
      else {
        const condition = conditionIsTrue(job, 'Complete') ? 'Complete' : 'Failed'
        events.event(cron, 'Normal', 'SawCompletedJob', `Saw completed job: ${job.metadata.name}, condition: ${condition}`)
      }
    }
    for (const job of owned) {
      const finished = timeOf(job.status?.completionTime)
      if (conditionIsTrue(job, 'Complete') && finished !== undefined && finished > (timeOf(status.lastSuccessfulTime) ?? 0)) {
        status.lastSuccessfulTime = job.status?.completionTime
      }
    }
    if (active.length > 0) status.active = active
    else delete status.active
  }

  async function isThere({ namespace, name = '' }: ObjectReference, signal: AbortSignal): Promise<boolean> {
    try {
      await client.of(jobs).get({ namespace, name }, { signal })
      return true
    } catch (error) {
      if (isStatus(error, 'NotFound')) return false
      throw error
    }
  }
}
