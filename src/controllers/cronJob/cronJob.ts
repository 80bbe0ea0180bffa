/**
 * Starts Jobs when their schedule says so, and forgets old ones (L3). Upstream: pkg/controller/cronjob/cronjob_controllerv2.go (v1.36).
 */
import type { CronJob, CronJobStatus, Job } from '#api/gen/types/batch.v1'
import type { ObjectReference } from '#api/gen/types/core.v1'
import { parseCronSchedule } from '#api/helpers/cronSchedule'
import { controllerOf, controllerReference, isControlledBy } from '#api/helpers/owners'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import { cronJobs, jobs } from '#client/builtIn'
import type { NewObject } from '#client/client'
import { referenceOf } from '#client/eventRecorder'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { conditionIsTrue, isJobFinished } from '../job/plan.ts'
import { controllerUidIndex, jobControllerIndexers } from '../shared/indexes.ts'
import { isNamespaceTerminating, messageOf } from '../shared/podControl.ts'
import { mostRecentTime, nextTime, timeOf } from './schedule.ts'

export const cronJob: ControllerDescriptor = {
  name: 'cronjob-controller',
  aliases: ['cronjob'],
  serviceAccount: 'cronjob-controller',
  create: createCronJobController,
}

/** A little late, so that a coarse clock does not wake us before the time. */
const afterDueMs = 100

function createCronJobController(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(cronJobs)
  const jobInformer = context.informers.of(jobs)
  jobInformer.addIndexers(jobControllerIndexers)
  const events = context.events('cronjob-controller')
  const reconciler = createReconciler(context, { name: cronJob.name, queueName: 'cronjob', workers: 5, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  const enqueueOwner = (job: Frozen<Job>) => {
    const controller = controllerOf(job)
    if (controller?.kind === 'CronJob') reconciler.queue.add(`${job.metadata.namespace}/${controller.name}`)
  }
  reconciler.watch(jobInformer, { onAdd: enqueueOwner, onUpdate: (_, job) => enqueueOwner(job), onDelete: enqueueOwner })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const cron = informer.store.get(key)
    if (!cron) return undefined
    const owned = jobInformer.store.byIndex(controllerUidIndex, cron.metadata.uid ?? '')
    const status = deepCopy<CronJobStatus>(cron.status ?? {})
    settle(cron, owned, status)
    for (const job of surplusJobs(cron, owned)) await remove(cron, job.metadata, signal)
    let wait: Result | undefined
    try {
      if (!cron.metadata.deletionTimestamp && !cron.spec.suspend) wait = await startWhenDue(cron, status, signal)
    } finally {
      if (!semanticEqual(status, cron.status)) await client.of(cronJobs).updateStatus({ ...cron, status } as Frozen<CronJob>, { signal })
    }
    return wait
  }

  /** Takes ended and vanished jobs off the list of active ones. */
  function settle(cron: Frozen<CronJob>, owned: readonly Frozen<Job>[], status: CronJobStatus): void {
    const byUid = new Map(owned.map((job) => [job.metadata.uid, job]))
    const active: ObjectReference[] = []
    for (const reference of status.active ?? []) {
      const job = byUid.get(reference.uid)
      if (!job) {
        // Just created ones may not be in the cache yet; their names are from the last schedule.
        if (jobInformer.store.get(keyOf({ metadata: reference })) || isFromLastSchedule(cron, reference.name)) active.push(reference)
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

  function isFromLastSchedule(cron: Frozen<CronJob>, name: string | undefined): boolean {
    const lastMs = timeOf(cron.status?.lastScheduleTime)
    return lastMs !== undefined && name === jobName(cron, lastMs) && clock.now() - lastMs < 10_000
  }

  async function remove(
    cron: Frozen<CronJob>,
    { namespace, name = '' }: { readonly namespace?: string | undefined; readonly name?: string | undefined },
    signal: AbortSignal,
  ) {
    try {
      await client.of(jobs).delete({ namespace, name }, { propagationPolicy: 'Background', signal })
      events.event(cron, 'Normal', 'SuccessfulDelete', `Deleted job ${name}`)
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  }

  async function startWhenDue(cron: Frozen<CronJob>, status: CronJobStatus, signal: AbortSignal): Promise<Result | undefined> {
    const { timeZone, startingDeadlineSeconds, concurrencyPolicy } = cron.spec
    const schedule = parseCronSchedule(cron.spec.schedule)
    if ('fault' in schedule) {
      events.event(cron, 'Warning', 'UnparseableSchedule', `unparseable schedule: ${JSON.stringify(cron.spec.schedule)} : ${schedule.fault}`)
      return undefined
    }
    const nowMs = clock.now()
    const sinceMs = timeOf(status.lastScheduleTime) ?? timeOf(cron.metadata.creationTimestamp) ?? nowMs
    const next = nextTime(schedule, nowMs, timeZone)
    const wait: Result = { requeueAfterMs: next === undefined ? undefined : next - nowMs + afterDueMs }
    const dueMs = mostRecentTime(schedule, sinceMs, nowMs, timeZone)
    if (dueMs === undefined) return wait
    if (startingDeadlineSeconds !== undefined && dueMs + startingDeadlineSeconds * 1000 < nowMs) {
      events.event(cron, 'Warning', 'MissSchedule', `Missed scheduled time to start a job: ${formatTime(dueMs)}`)
      return wait
    }
    if (concurrencyPolicy === 'Forbid' && status.active?.length) {
      events.event(cron, 'Normal', 'JobAlreadyActive', 'Not starting job because prior execution is running and concurrency policy is Forbid')
      return wait
    }
    if (concurrencyPolicy === 'Replace') {
      for (const reference of status.active ?? []) await remove(cron, reference, signal)
      delete status.active
    }
    const job = await start(cron, dueMs, signal)
    if (!job) return wait
    if (!status.active?.some(({ uid }) => uid === job.metadata.uid)) status.active = [...(status.active ?? []), referenceOf(job)]
    status.lastScheduleTime = formatTime(dueMs)
    return wait
  }

  /** The job of this time; its name follows from the time, so that it cannot be started twice. */
  async function start(cron: Frozen<CronJob>, dueMs: number, signal: AbortSignal): Promise<Frozen<Job> | undefined> {
    const wanted = jobOf(cron, dueMs)
    try {
      const job = await client.of(jobs).create(wanted, { signal })
      events.event(cron, 'Normal', 'SuccessfulCreate', `Created job ${job.metadata.name}`)
      return job
    } catch (error) {
      if (isNamespaceTerminating(error)) return undefined
      if (isStatus(error, 'AlreadyExists')) {
        const there = await client.of(jobs).get({ namespace: cron.metadata.namespace, name: wanted.metadata.name ?? '' }, { signal })
        if (isControlledBy(there, cron)) return there
      }
      events.event(cron, 'Warning', 'FailedCreate', `Error creating job: ${messageOf(error)}`)
      throw error
    }
  }
}

/** Ended jobs beyond the history limits, oldest first. */
function surplusJobs(cron: Frozen<CronJob>, owned: readonly Frozen<Job>[]): Frozen<Job>[] {
  const startOf = (job: Frozen<Job>) => job.status?.startTime ?? job.metadata.creationTimestamp ?? ''
  const oldest = (type: string, limit: number | undefined) => {
    const ended = owned.filter((job) => conditionIsTrue(job, type) && !job.metadata.deletionTimestamp).sort((a, b) => (startOf(a) < startOf(b) ? -1 : 1))
    return limit === undefined ? [] : ended.slice(0, Math.max(0, ended.length - limit))
  }
  return [...oldest('Complete', cron.spec.successfulJobsHistoryLimit), ...oldest('Failed', cron.spec.failedJobsHistoryLimit)]
}

const jobName = (cron: Frozen<CronJob>, dueMs: number) => `${cron.metadata.name}-${Math.floor(dueMs / 60_000)}`

function jobOf(cron: Frozen<CronJob>, dueMs: number): NewObject<Job> {
  const { metadata, spec } = cron.spec.jobTemplate
  return {
    metadata: {
      namespace: cron.metadata.namespace,
      name: jobName(cron, dueMs),
      ...(metadata?.labels ? { labels: { ...metadata.labels } } : {}),
      annotations: { ...metadata?.annotations, 'batch.kubernetes.io/cronjob-scheduled-timestamp': formatTime(dueMs) },
      ownerReferences: [controllerReference(cron)],
    },
    spec: deepCopy<Job['spec']>(spec as Frozen<Job['spec']>),
  }
}
