/**
 * Creates and deletes a Job's pods (L3): as many as plan.ts wants, no sooner than failures.ts allows. job.ts calls it once per pass.
 * Upstream: manageJob and deleteActivePods in pkg/controller/job/job_controller.go (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { pods } from '#client/builtIn'
import type { Client, NewObject } from '#client/client'
import type { Expectations } from '#client/expectations'
import { forAllInTurns, isNamespaceTerminating, type PodControl, podFromTemplate, slowStartBatch } from '../shared/podControl.ts'
import type { PodPace } from '../shared/podPace.ts'
import { dueIndexes, failureAnnotations, hasLimitPerIndex, msUntilRetry, onlyReplacesFailed } from './failures.ts'
import { completionIndexAnnotation, isIndexed } from './indexes.ts'
import type { JobMetrics, SyncAction } from './jobMetrics.ts'
import * as plan from './plan.ts'

const maxPodsPerSync = 500
/** The server appends five random characters to the name, which may have 63. */
const maxGenerateNameLength = 58

export interface JobPodsDeps {
  readonly client: Client
  readonly clock: Clock
  readonly podControl: PodControl
  readonly expectations: Expectations
  readonly metrics: JobMetrics
  readonly pace: PodPace
}

export interface Managed {
  readonly action: SyncAction
  /** How long until the next attempt, if one is due. */
  readonly waitMs?: number | undefined
}

export interface JobPods {
  /** Brings the pods to the number wanted. */
  manage(key: string, object: Frozen<Job>, counts: plan.Counts, signal: AbortSignal): Promise<Managed>
  /** Ends the active pods of a job that is over; they are counted as they end. */
  end(key: string, object: Frozen<Job>, counts: plan.Counts, signal: AbortSignal): Promise<void>
}

/** Creates and deletes the pods of a job; `expectations` counts each of them. */
export function createJobPods({ client, clock, podControl, expectations, metrics, pace }: JobPodsDeps): JobPods {
  return { manage, end: (key, object, { active }, signal) => remove(key, object, active, signal) }

  async function manage(key: string, object: Frozen<Job>, counts: plan.Counts, signal: AbortSignal): Promise<Managed> {
    const active = counts.active.length
    const wanted = object.spec.suspend === true ? 0 : plan.wantedActive(object, counts)
    const surplus = plan.surplusPods(object, counts.active, Math.max(0, active - wanted), clock.now()).slice(0, maxPodsPerSync)
    if (surplus.length > 0) {
      // These pods did not fail: remove their finalizer without counting them.
      const { error } = await forAllInTurns(clock, surplus, (pod) => releasePod(client, pod, signal))
      if (error !== undefined) throw error
      await remove(key, object, surplus, signal)
      return { action: 'pods_deleted' }
    }
    const missing = Math.min(wanted - active - (onlyReplacesFailed(object) ? counts.terminating : 0), maxPodsPerSync)
    if (missing <= 0) return { action: 'tracking' }
    if (hasLimitPerIndex(object)) {
      const { due, nextMs } = dueIndexes(plan.nextIndexes(object, counts, missing), counts.held, clock.now())
      const { count, waitMs = nextMs } = pace.take(object.metadata.namespace, due.length)
      await create(key, object, count, (i) => jobPod(object, due[i], failureAnnotations(object, counts.held.get(due[i] ?? -1))), signal)
      return { action: count > 0 ? 'pods_created' : 'tracking', waitMs }
    }
    const retryMs = msUntilRetry(counts.pods, clock.now())
    if (retryMs > 0) return { action: 'tracking', waitMs: retryMs }
    const indexes = isIndexed(object) ? plan.nextIndexes(object, counts, missing) : undefined
    const { count, waitMs } = pace.take(object.metadata.namespace, indexes?.length ?? missing)
    await create(key, object, count, (i) => jobPod(object, indexes?.[i]), signal)
    return { action: count > 0 ? 'pods_created' : 'tracking', waitMs }
  }

  async function create(key: string, object: Frozen<Job>, count: number, podOf: (i: number) => NewObject<Pod>, signal: AbortSignal): Promise<void> {
    const replaces = (object.status?.failed ?? 0) > 0 || (object.status?.terminating ?? 0) > 0
    const reason = !replaces ? 'new' : onlyReplacesFailed(object) ? 'recreate_failed' : 'recreate_terminating_or_failed'
    expectations.expectCreations(key, count)
    const { successes, error } = await slowStartBatch(clock, count, async (i) => {
      await podControl.create(object, podOf(i), signal).catch((error: unknown) => {
        if (!isNamespaceTerminating(error)) throw error
      })
    })
    expectations.creationsFailed(key, count - successes)
    metrics.created(reason, successes, count - successes)
    if (error !== undefined) throw error
  }

  async function remove(key: string, object: Frozen<Job>, leaving: readonly Frozen<Pod>[], signal: AbortSignal): Promise<void> {
    if (leaving.length === 0) return
    expectations.expectDeletions(key, leaving.map(keyOf))
    const { error } = await forAllInTurns(clock, leaving, (pod) =>
      podControl.delete(object, pod, signal).catch((error: unknown) => {
        expectations.deletionObserved(key, keyOf(pod))
        if (!isStatus(error, 'NotFound')) throw error
      }),
    )
    if (error !== undefined) throw error
  }
}

/** The job's next pod; of an indexed job, the one for `index`. */
export function jobPod(object: Frozen<Job>, index: number | undefined, annotations: Readonly<Record<string, string>> = {}): NewObject<Pod> {
  const pod = podFromTemplate(object.spec.template, object)
  pod.metadata.finalizers = [...(pod.metadata.finalizers ?? []).filter((one) => one !== plan.trackingFinalizer), plan.trackingFinalizer]
  if (index === undefined) return pod
  const text = String(index)
  const suffix = `-${text}-`
  pod.metadata.generateName = `${(object.metadata.name ?? '').slice(0, maxGenerateNameLength - suffix.length)}${suffix}`
  pod.metadata.annotations = { ...pod.metadata.annotations, [completionIndexAnnotation]: text, ...annotations }
  pod.metadata.labels = { ...pod.metadata.labels, [completionIndexAnnotation]: text }
  pod.spec.hostname = `${object.metadata.name}-${text}`
  const variable = { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef: { fieldPath: `metadata.labels['${completionIndexAnnotation}']` } } }
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    if (!container.env?.some(({ name }) => name === variable.name)) container.env = [...(container.env ?? []), variable]
  }
  return pod
}

/** Lets a pod go that is counted, or need not be. */
export async function releasePod(client: Client, pod: Frozen<Pod>, signal: AbortSignal): Promise<void> {
  if (!plan.isTracked(pod)) return
  const { namespace, name = '', uid } = pod.metadata
  const body = { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [plan.trackingFinalizer] } }
  try {
    await client.of(pods).patch({ namespace, name }, 'strategic', body, { signal })
  } catch (error) {
    if (!isStatus(error, 'NotFound')) throw error
  }
}
