/**
 * Runs Jobs to their end (L3). plan.ts counts and decides; this file listens, creates and deletes pods, and lets finished ones go.
 * Upstream: pkg/controller/job/job_controller.go (v1.36). Not yet: podFailurePolicy, backoffLimitPerIndex, successPolicy.
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { controllerOf } from '#api/helpers/owners'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf, refOfKey } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { jobs, pods } from '#client/builtIn'
import type { Client, NewObject } from '#client/client'
import { createExpectations } from '#client/expectations'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { claim } from '../shared/claim.ts'
import { podsToDelete } from '../shared/deletionRank.ts'
import { controllerUidIndex, podControllerIndexers } from '../shared/indexes.ts'
import { ownedPodHandler } from '../shared/ownedPodHandler.ts'
import { createPodControl, isNamespaceTerminating, podFromTemplate, slowStartBatch } from '../shared/podControl.ts'
import { completionIndexAnnotation } from './indexes.ts'
import * as plan from './plan.ts'

export const job: ControllerDescriptor = { name: 'job-controller', aliases: ['job'], serviceAccount: 'job-controller', create: createJobController }

const maxPodsPerSync = 500

function createJobController(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(jobs)
  const podInformer = context.informers.of(pods)
  podInformer.addIndexers(podControllerIndexers)
  const events = context.events('job-controller')
  const podControl = createPodControl(client, events)
  const expectations = createExpectations(clock)
  const reconciler = createReconciler(context, { name: job.name, queueName: 'job', workers: 5, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  const handler = ownedPodHandler({ informer, queue: reconciler.queue, expectations })
  reconciler.watch(podInformer, {
    ...handler,
    onAdd: (pod, initial) => {
      handler.onAdd?.(pod, initial)
      enqueueAbandoned(pod)
    },
    onUpdate: (old, pod) => {
      handler.onUpdate?.(old, pod)
      enqueueAbandoned(pod)
    },
  })
  return reconciler

  /** A tracked pod whose job is gone must not be held by our finalizer. */
  function enqueueAbandoned(pod: Frozen<Pod>): void {
    const controller = controllerOf(pod)
    if (plan.isTracked(pod) && controller?.kind === 'Job') reconciler.queue.add(`${pod.metadata.namespace}/${controller.name}`)
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const object = informer.store.get(key)
    if (!object) {
      expectations.forget(key)
      await releaseAbandoned(key, signal)
      return undefined
    }
    if (object.spec.managedBy && object.spec.managedBy !== 'kubernetes.io/job-controller') return undefined
    const owned = podInformer.store.byIndex(controllerUidIndex, object.metadata.uid ?? '')
    if (plan.isJobFinished(object)) {
      for (const pod of owned.filter(plan.isTracked)) await releasePod(client, pod, signal)
      return undefined
    }
    const maySync = expectations.satisfied(key)
    const orphans = podInformer.store.byIndex(controllerUidIndex, `orphan:${object.metadata.namespace}`)
    const options = { context, owner: object, ownerResource: jobs, resource: pods, selector: selectorOf(object.spec.selector), signal }
    const all = await claim([...owned, ...orphans], options)
    const counts = plan.countPods(object, all)
    const verdict = plan.verdictOf(object, counts, clock.now())
    const status = plan.jobStatus(object, counts, verdict, clock.now())
    // The uids are safe in the status before the pods may go.
    if (!semanticEqual(status, object.status)) {
      await client.of(jobs).updateStatus({ ...object, status } as Frozen<Job>, { signal })
      report(object, { ...object, status } as Frozen<Job>)
    }
    for (const pod of counts.release) await releasePod(client, pod, signal)
    if (!maySync || object.metadata.deletionTimestamp) return undefined
    const waitMs = await manage(key, object, all, counts, verdict !== undefined || object.spec.suspend === true, signal)
    return { requeueAfterMs: waitMs ?? plan.msUntilDeadline(object, clock.now()) }
  }

  function report(before: Frozen<Job>, after: Frozen<Job>): void {
    const became = (type: string) => !plan.conditionIsTrue(before, type) && plan.conditionIsTrue(after, type)
    if (became('Complete')) events.event(after, 'Normal', 'Completed', 'Job completed')
    if (became('Suspended')) events.event(after, 'Normal', 'Suspended', 'Job suspended')
    if (plan.conditionIsTrue(before, 'Suspended') && !plan.conditionIsTrue(after, 'Suspended')) events.event(after, 'Normal', 'Resumed', 'Job resumed')
    const failed = became('Failed') ? after.status?.conditions?.find(({ type }) => type === 'Failed') : undefined
    if (failed) events.event(after, 'Warning', failed.reason ?? 'Failed', failed.message ?? '')
  }

  /** Creates or deletes pods; returns how long to wait for the next attempt, if one is due. */
  async function manage(key: string, object: Frozen<Job>, all: readonly Frozen<Pod>[], counts: plan.Counts, stopping: boolean, signal: AbortSignal) {
    const wanted = stopping ? 0 : plan.wantedActive(object, counts)
    const surplus = podsToDelete(counts.active, counts.active, Math.max(0, counts.active.length - wanted), clock.now()).slice(0, maxPodsPerSync)
    if (surplus.length > 0) {
      expectations.expectDeletions(key, surplus.map(keyOf))
      await Promise.all(
        surplus.map((pod) =>
          podControl.delete(object, pod, signal).catch((error: unknown) => {
            expectations.deletionObserved(key, keyOf(pod))
            if (!isStatus(error, 'NotFound')) throw error
          }),
        ),
      )
      return undefined
    }
    const replacing = object.spec.podReplacementPolicy === 'Failed' ? counts.terminating : 0
    const missing = Math.min(wanted - counts.active.length - replacing, maxPodsPerSync)
    if (missing <= 0) return undefined
    const waitMs = plan.msUntilRetry(all, clock.now())
    if (waitMs > 0) return waitMs
    const indexes = plan.isIndexed(object) ? plan.nextIndexes(object, counts, all, missing) : undefined
    const count = indexes?.length ?? missing
    let next = 0
    expectations.expectCreations(key, count)
    const { successes, error } = await slowStartBatch(count, async () => {
      await podControl.create(object, jobPod(object, indexes?.[next++]), signal).catch((error: unknown) => {
        if (!isNamespaceTerminating(error)) throw error
      })
    })
    expectations.creationsFailed(key, count - successes)
    if (error !== undefined) throw error
    return undefined
  }

  async function releaseAbandoned(key: string, signal: AbortSignal): Promise<void> {
    const { namespace, name } = refOfKey(key)
    const mine = (pod: Frozen<Pod>) => plan.isTracked(pod) && controllerOf(pod)?.kind === 'Job' && controllerOf(pod)?.name === name
    for (const pod of podInformer.lister.list({ namespace, matches: mine })) await releasePod(client, pod, signal)
  }
}

/** The job's next pod; of an indexed job, the one for `index`. */
function jobPod(object: Frozen<Job>, index: number | undefined): NewObject<Pod> {
  const pod = podFromTemplate(object.spec.template, object)
  pod.metadata.finalizers = [...(pod.metadata.finalizers ?? []).filter((one) => one !== plan.trackingFinalizer), plan.trackingFinalizer]
  if (index === undefined) return pod
  const text = String(index)
  pod.metadata.generateName = `${object.metadata.name}-${text}-`
  pod.metadata.annotations = { ...pod.metadata.annotations, [completionIndexAnnotation]: text }
  pod.metadata.labels = { ...pod.metadata.labels, [completionIndexAnnotation]: text }
  pod.spec.hostname = `${object.metadata.name}-${text}`
  const variable = { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef: { fieldPath: `metadata.labels['${completionIndexAnnotation}']` } } }
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    if (!container.env?.some(({ name }) => name === variable.name)) container.env = [...(container.env ?? []), variable]
  }
  return pod
}

/** Lets a counted pod go. */
async function releasePod(client: Client, pod: Frozen<Pod>, signal: AbortSignal): Promise<void> {
  const { namespace, name = '', uid } = pod.metadata
  const body = { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [plan.trackingFinalizer] } }
  try {
    await client.of(pods).patch({ namespace, name }, 'strategic', body, { signal })
  } catch (error) {
    if (!isStatus(error, 'NotFound')) throw error
  }
}
