/**
 * Keeps as many pods as a ReplicaSet asks for (L3): adopts and releases, creates in growing batches, deletes what hurts least.
 * Upstream: pkg/controller/replicaset/replica_set.go (v1.36).
 */
import type { ReplicaSet, ReplicaSetStatus } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { controllerOf } from '#api/helpers/owners'
import { isPodActive, isPodTerminating } from '#api/helpers/pods'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { pods, replicaSets } from '#client/builtIn'
import { createExpectations } from '#client/expectations'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { claim } from '../shared/claim.ts'
import { controllerUidIndex, podControllerIndexers, replicaSetControllerIndexers } from '../shared/indexes.ts'
import { ownedPodHandler } from '../shared/ownedPodHandler.ts'
import { createPodControl, isNamespaceTerminating, messageOf, podFromTemplate, slowStartBatch } from '../shared/podControl.ts'
import { msUntilNextAvailable, planReplicas, replicaSetStatus } from './plan.ts'

export const replicaSet: ControllerDescriptor = {
  name: 'replicaset-controller',
  aliases: ['replicaset'],
  serviceAccount: 'replicaset-controller',
  create: createReplicaSetController,
}

function createReplicaSetController(context: ControllerContext) {
  const { client, clock } = context
  const podInformer = context.informers.of(pods)
  const informer = context.informers.of(replicaSets)
  podInformer.addIndexers(podControllerIndexers)
  informer.addIndexers(replicaSetControllerIndexers)
  const podControl = createPodControl(client, context.events('replicaset-controller'))
  const expectations = createExpectations(clock)
  const reconciler = createReconciler(context, { name: replicaSet.name, queueName: 'replicaset', workers: 5, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  reconciler.watch(podInformer, ownedPodHandler({ informer, queue: reconciler.queue, expectations }))
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const set = informer.store.get(key)
    if (!set) {
      expectations.forget(key)
      return
    }
    // Asked before the pods are read: what is satisfied now is in the cache already.
    const maySync = expectations.satisfied(key)
    const selector = selectorOf(set.spec.selector)
    const uid = set.metadata.uid ?? ''
    const owned = podInformer.store.byIndex(controllerUidIndex, uid)
    const orphans = podInformer.store.byIndex(controllerUidIndex, `orphan:${set.metadata.namespace}`)
    const active = await claim([...owned, ...orphans].filter(isPodActive), {
      context,
      owner: set,
      ownerResource: replicaSets,
      resource: pods,
      selector,
      signal,
    })
    let failure: unknown
    if (maySync && !set.metadata.deletionTimestamp) failure = await manageReplicas(key, set, active, signal)
    const status = replicaSetStatus(set, active, owned.filter(isPodTerminating).length, failure === undefined ? undefined : messageOf(failure), clock.now())
    await updateStatus(set, status, signal)
    if (failure !== undefined) throw failure
    return { requeueAfterMs: msUntilNextAvailable(set, active, clock.now()) }
  }

  /** Carries out the plan; returns the first failure. */
  async function manageReplicas(key: string, set: Frozen<ReplicaSet>, active: readonly Frozen<Pod>[], signal: AbortSignal): Promise<unknown> {
    const plan = planReplicas(set, active, relatedPods(set), clock.now())
    if (plan.create > 0) {
      expectations.expectCreations(key, plan.create)
      const { successes, error } = await slowStartBatch(plan.create, async () => {
        try {
          await podControl.create(set, podFromTemplate(set.spec.template ?? {}, set), signal)
        } catch (error) {
          // The namespace is going away: there is nothing to try again.
          if (!isNamespaceTerminating(error)) throw error
        }
      })
      if (successes < plan.create) expectations.creationsFailed(key, plan.create - successes)
      return error
    }
    if (plan.remove.length === 0) return undefined
    expectations.expectDeletions(key, plan.remove.map(keyOf))
    const results = await Promise.allSettled(
      plan.remove.map(async (pod) => {
        try {
          await podControl.delete(set, pod, signal)
        } catch (error) {
          expectations.deletionObserved(key, keyOf(pod))
          if (!isStatus(error, 'NotFound')) throw error
        }
      }),
    )
    return results.find((result) => result.status === 'rejected')?.reason
  }

  /** Pods of all ReplicaSets that share this one's controller: the Deployment's pods. */
  function relatedPods(set: Frozen<ReplicaSet>): readonly Frozen<Pod>[] {
    const controller = controllerOf(set)
    const sets = controller ? informer.store.byIndex(controllerUidIndex, controller.uid) : [set]
    return sets.flatMap(({ metadata }) => podInformer.store.byIndex(controllerUidIndex, metadata.uid ?? ''))
  }

  async function updateStatus(set: Frozen<ReplicaSet>, status: ReplicaSetStatus, signal: AbortSignal): Promise<void> {
    if (semanticEqual(status, set.status)) return
    await client.of(replicaSets).updateStatus({ ...set, status } as Frozen<ReplicaSet>, { signal })
  }
}
