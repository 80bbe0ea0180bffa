/**
 * Runs Jobs to their end (L3). plan.ts counts and decides, status.ts writes down, manage.ts creates and deletes pods; this file listens, calls
 * them in order, and lets counted pods go. Upstream: pkg/controller/job/job_controller.go (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { controllerOf } from '#api/helpers/owners'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf, refOfKey } from '#api/machinery/meta'
import { jobs, pods } from '#client/builtIn'
import { createExpectations } from '#client/expectations'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { claim } from '../shared/claim.ts'
import { controllerUidIndex, podControllerIndexers } from '../shared/indexes.ts'
import { ownedPodHandler } from '../shared/ownedPodHandler.ts'
import { changesCounts } from '../shared/podChange.ts'
import { createPodControl } from '../shared/podControl.ts'
import { createPodPace } from '../shared/podPace.ts'
import { createJobMetrics, type SyncAction } from './jobMetrics.ts'
import { createJobPods, releasePod } from './manage.ts'
import * as plan from './plan.ts'
import { reportJob } from './report.ts'
import { jobStatus, trackPods } from './status.ts'

export const job: ControllerDescriptor = { name: 'job-controller', aliases: ['job'], serviceAccount: 'job-controller', create: createJobController }

function createJobController(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(jobs)
  const podInformer = context.informers.of(pods)
  podInformer.addIndexers(podControllerIndexers)
  const events = context.events('job-controller')
  const expectations = createExpectations(clock)
  const metrics = createJobMetrics(context.metrics)
  const pace = createPodPace(clock, podInformer.store)
  const jobPods = createJobPods({ client, clock, podControl: createPodControl(client, events), expectations, metrics, pace })
  const reconciler = createReconciler(context, { name: job.name, queueName: 'job', workers: 5, reconcile })
  reconciler.watch(informer, {
    ...enqueueSelf<Job>(reconciler.queue),
    onAdd: (object) => {
      if (isForeign(object)) metrics.foreign(object.spec.managedBy ?? '')
      reconciler.queue.add(keyOf(object))
    },
  })
  const handler = ownedPodHandler({
    informer,
    queue: reconciler.queue,
    expectations,
    concerns: (old, pod, object) => changesCounts(old, pod, object.spec),
  })
  reconciler.watch(podInformer, {
    ...handler,
    onAdd: (pod, initial) => {
      metrics.pod(undefined, pod)
      handler.onAdd?.(pod, initial)
      enqueueAbandoned(pod)
    },
    onUpdate: (old, pod) => {
      metrics.pod(old, pod)
      handler.onUpdate?.(old, pod)
      enqueueAbandoned(pod)
    },
    onDelete: (pod, unknown) => {
      metrics.pod(pod, undefined)
      handler.onDelete?.(pod, unknown)
    },
  })
  return reconciler

  /** A tracked pod whose job is gone must not be held by our finalizer. */
  function enqueueAbandoned(pod: Frozen<Pod>): void {
    const controller = controllerOf(pod)
    if (!plan.isTracked(pod) || controller?.kind !== 'Job') return
    const key = `${pod.metadata.namespace}/${controller.name}`
    if (informer.store.get(key)?.metadata.uid !== controller.uid) reconciler.queue.add(key)
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const object = informer.store.get(key)
    if (!object) {
      expectations.forget(key)
      await releaseAbandoned(key, signal)
      return undefined
    }
    if (isForeign(object)) return undefined
    const owned = podInformer.store.byIndex(controllerUidIndex, object.metadata.uid ?? '')
    if (plan.isJobFinished(object)) {
      for (const pod of owned.filter(plan.isTracked)) await releasePod(client, pod, signal)
      return undefined
    }
    const startMs = clock.monotonicMs()
    const seconds = () => (clock.monotonicMs() - startMs) / 1000
    const outcome: { action: SyncAction } = { action: 'reconciling' }
    try {
      const result = await sync(key, object, owned, outcome, signal)
      metrics.synced(object, outcome.action, true, seconds())
      return result
    } catch (error) {
      metrics.synced(object, outcome.action, false, seconds())
      throw error
    }
  }

  async function sync(
    key: string,
    object: Frozen<Job>,
    owned: readonly Frozen<Pod>[],
    outcome: { action: SyncAction },
    signal: AbortSignal,
  ): Promise<Result | undefined> {
    const maySync = expectations.satisfied(key)
    const orphans = podInformer.store.byIndex(controllerUidIndex, `orphan:${object.metadata.namespace}`)
    const options = { context, owner: object, ownerResource: jobs, resource: pods, selector: selectorOf(object.spec.selector), signal }
    const counts = plan.countPods(object, await claim([...owned, ...orphans], options))
    const verdict = plan.verdictOf(object, counts, clock.now())
    const tracking = trackPods(object, counts, verdict)
    const status = jobStatus(object, { counts, tracking, verdict, complete: maySync, nowMs: clock.now() })
    // The uids are safe in the status before the pods may go.
    if (!semanticEqual(status, object.status)) {
      await client.of(jobs).updateStatus({ ...object, status } as Frozen<Job>, { signal })
      metrics.written(object, { ...object, status } as Frozen<Job>)
      reportJob(events, object, { ...object, status } as Frozen<Job>)
    }
    for (const action of tracking.failureActions) metrics.failureHandled(action)
    for (const pod of tracking.release) await releasePod(client, pod, signal)
    if (!maySync || object.metadata.deletionTimestamp) return undefined
    if (verdict) {
      outcome.action = counts.active.length > 0 ? 'pods_deleted' : 'tracking'
      await jobPods.end(key, object, counts, signal)
      return undefined
    }
    const { action, waitMs } = await jobPods.manage(key, object, counts, signal)
    outcome.action = action
    const deadlineMs = plan.msUntilDeadline(object, clock.now())
    return { requeueAfterMs: waitMs !== undefined && deadlineMs !== undefined ? Math.min(waitMs, deadlineMs) : (waitMs ?? deadlineMs) }
  }

  async function releaseAbandoned(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = refOfKey(key)
    const mine = (pod: Frozen<Pod>) => plan.isTracked(pod) && controllerOf(pod)?.kind === 'Job' && controllerOf(pod)?.name === name
    for (const pod of podInformer.lister.list({ namespace, matches: mine })) await releasePod(client, pod, signal)
  }
}

/** Another controller manages the job. */
function isForeign({ spec }: Frozen<Job>): boolean {
  return Boolean(spec.managedBy) && spec.managedBy !== 'kubernetes.io/job-controller'
}
