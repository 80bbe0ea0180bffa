/**
 * Deletes finished Jobs when their ttlSecondsAfterFinished is over (L3). Upstream: pkg/controller/ttlafterfinished (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { exponentialBuckets } from '#base/metrics'
import { parseTime } from '#base/time'
import { jobs } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'

export const ttlAfterFinished: ControllerDescriptor = {
  name: 'ttl-after-finished-controller',
  aliases: ['ttl-after-finished'],
  serviceAccount: 'ttl-after-finished-controller',
  create: createTtlController,
}

function createTtlController(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(jobs)
  const deletions = context.metrics.histogram({
    name: 'ttl_after_finished_controller_job_deletion_duration_seconds',
    help: 'How long after its time to live a job was deleted, in seconds.',
    buckets: exponentialBuckets(0.1, 2, 14),
  })
  const reconciler = createReconciler(context, {
    name: ttlAfterFinished.name,
    queueName: 'ttl_jobs_to_delete',
    workers: 5,
    async reconcile(key, signal) {
      const job = informer.store.get(key)
      const dueInMs = job && msUntilExpiry(job, clock.now())
      if (!job || dueInMs === undefined) return undefined
      if (dueInMs > 0) return { requeueAfterMs: dueInMs }
      const { namespace, name = '', uid, resourceVersion } = job.metadata
      try {
        // Another client may have raised ttlSecondsAfterFinished meanwhile: the resourceVersion makes the deletion fail then.
        await client.of(jobs).delete({ namespace, name }, { propagationPolicy: 'Foreground', preconditions: { uid, resourceVersion }, signal })
        deletions.observe(Math.max(0, clock.now() - (expiryMs(job) ?? clock.now())) / 1000)
      } catch (error) {
        if (!isStatus(error, 'NotFound')) throw error
      }
      return undefined
    },
  })
  reconciler.watch(
    informer,
    enqueueSelf(reconciler.queue, (job) => msUntilExpiry(job, clock.now()) !== undefined),
  )
  return reconciler
}

/** Undefined: not finished, without a time to live, or being deleted. */
function expiryMs(job: Frozen<Job>): number | undefined {
  const finished = job.status?.conditions?.find(({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True')
  const finishedMs = parseTime(finished?.lastTransitionTime ?? '')
  const ttl = job.spec.ttlSecondsAfterFinished
  if (finishedMs === undefined || ttl === undefined || job.metadata.deletionTimestamp) return undefined
  return finishedMs + ttl * 1000
}

function msUntilExpiry(job: Frozen<Job>, nowMs: number): number | undefined {
  const atMs = expiryMs(job)
  return atMs === undefined ? undefined : Math.max(0, atMs - nowMs)
}
