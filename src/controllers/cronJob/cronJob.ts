/**
 * Runs CronJobs (L3): starter.ts starts their jobs on schedule, activeJobs.ts keeps the list of running ones; this file listens,
 * calls them, and forgets old jobs. It sleeps until something is due. Upstream: pkg/controller/cronjob/cronjob_controllerv2.go (v1.36).
 */
import type { CronJob, CronJobStatus, Job } from '#api/gen/types/batch.v1'
import { controllerOf } from '#api/helpers/owners'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { cronJobs, jobs } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { conditionIsTrue } from '../job/plan.ts'
import { controllerUidIndex, jobControllerIndexers } from '../shared/indexes.ts'
import { createActiveJobs } from './activeJobs.ts'
import { createStarter } from './starter.ts'

export const cronJob: ControllerDescriptor = {
  name: 'cronjob-controller',
  aliases: ['cronjob'],
  serviceAccount: 'cronjob-controller',
  create: createCronJobController,
}

function createCronJobController(context: ControllerContext) {
  const { client, clock, metrics } = context
  const informer = context.informers.of(cronJobs)
  const jobInformer = context.informers.of(jobs)
  jobInformer.addIndexers(jobControllerIndexers)
  const events = context.events('cronjob-controller')
  const starter = createStarter({ client, clock, events, metrics })
  const activeJobs = createActiveJobs(client, events)
  const reconciler = createReconciler(context, { name: cronJob.name, queueName: 'cronjob', workers: 5, reconcile })
  const handler = enqueueSelf<CronJob>(reconciler.queue)
  reconciler.watch(informer, {
    ...handler,
    onUpdate(old, cron) {
      const changed = old.spec.schedule !== cron.spec.schedule || old.spec.timeZone !== cron.spec.timeZone
      // A changed schedule applies from its next time: earlier times that it would have had are not made up.
      const waitMs = changed ? starter.msUntilNext(cron) : undefined
      if (waitMs === undefined) handler.onUpdate?.(old, cron)
      else reconciler.queue.addAfter(keyOf(cron), waitMs)
    },
  })
  const enqueueOwner = (job: Frozen<Job>) => {
    const controller = controllerOf(job)
    if (controller?.kind === 'CronJob') reconciler.queue.add(`${job.metadata.namespace}/${controller.name}`)
  }
  reconciler.watch(jobInformer, { onAdd: enqueueOwner, onUpdate: (_, job) => enqueueOwner(job), onDelete: enqueueOwner })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const cached = informer.store.get(key)
    if (!cached) return undefined
    const owned = jobInformer.store.byIndex(controllerUidIndex, cached.metadata.uid ?? '')
    const cron = await activeJobs.withKnownJobs(cached, owned, signal)
    const status = deepCopy<CronJobStatus>(cron.status ?? {})
    await activeJobs.settle(cron, owned, status, signal)
    for (const job of surplusJobs(cron, owned)) await starter.remove(cron, job.metadata, signal)
    let wait: Result | undefined
    try {
      if (!cron.metadata.deletionTimestamp && !cron.spec.suspend) wait = await starter.startWhenDue(cron, status, signal)
    } finally {
      if (!semanticEqual(status, cron.status)) await client.of(cronJobs).updateStatus({ ...cron, status } as Frozen<CronJob>, { signal })
    }
    return wait
  }
}

/** Ended jobs beyond the history limits, oldest first. */
function surplusJobs(cron: Frozen<CronJob>, owned: readonly Frozen<Job>[]): Frozen<Job>[] {
  const begin = (job: Frozen<Job>) => `${job.status?.startTime ?? job.metadata.creationTimestamp} ${job.metadata.name}`
  const oldest = (type: string, limit: number | undefined) => {
    const ended = owned.filter((job) => conditionIsTrue(job, type) && !job.metadata.deletionTimestamp).sort((a, b) => (begin(a) < begin(b) ? -1 : 1))
    return limit === undefined ? [] : ended.slice(0, Math.max(0, ended.length - limit))
  }
  return [...oldest('Complete', cron.spec.successfulJobsHistoryLimit), ...oldest('Failed', cron.spec.failedJobsHistoryLimit)]
}
