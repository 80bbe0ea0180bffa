/**
 * Keeps as many pods as a ReplicaSet asks for (L3): adopts and releases, creates in growing batches, deletes what hurts least. The same for
 * ReplicationControllers, which replicationController.ts shows to it as ReplicaSets. Upstream: pkg/controller/replicaset/replica_set.go (v1.36).
 */
import type { ReplicaSet, ReplicaSetStatus } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { controllerOf } from '#api/helpers/owners'
import { isPodActive } from '#api/helpers/pods'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { least } from '#base/extremes'
import { messageOf } from '#base/messageOf'
import { exponentialBuckets } from '#base/metrics'
import { pods, replicaSets } from '#client/builtIn'
import type { Resource } from '#client/client'
import { createExpectations } from '#client/expectations'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { claim, decide } from '../shared/claim.ts'
import { deletionAgeRatios } from '../shared/deletionRank.ts'
import { controllerUidIndex, podControllerIndexers, replicaSetControllerIndexers } from '../shared/indexes.ts'
import { ownedPodHandler } from '../shared/ownedPodHandler.ts'
import { changesCounts } from '../shared/podChange.ts'
import { createPodControl, forAllInTurns, isNamespaceTerminating, podFromTemplate, slowStartBatch } from '../shared/podControl.ts'
import { createPodPace } from '../shared/podPace.ts'
import { msUntilNextAvailable, type OwnPods, planReplicas, replicaSetStatus } from './plan.ts'
import { countsOfPods, countsOfTally, type ReplicaCounts, replicaTallies, replicaTally } from './replicaCounts.ts'

export const replicaSet: ControllerDescriptor = {
  name: 'replicaset-controller',
  aliases: ['replicaset'],
  serviceAccount: 'replicaset-controller',
  create: createReplicaSetController,
}

function createReplicaSetController(context: ControllerContext) {
  context.informers.of(replicaSets).addIndexers(replicaSetControllerIndexers)
  return createReplicaController(context, {
    name: replicaSet.name,
    queueName: 'replicaset',
    component: 'replicaset-controller',
    resource: replicaSets,
    asReplicaSet: (set) => set,
    statusOf: (status) => status,
    siblings(set) {
      const controller = controllerOf(set)
      return controller ? context.informers.of(replicaSets).store.byIndex(controllerUidIndex, controller.uid) : [set]
    },
  })
}

/** What differs between the two kinds that keep a number of pods. */
export interface ReplicaKind<T extends Replicating> {
  readonly name: string
  readonly queueName: string
  /** The source of its events. */
  readonly component: string
  readonly resource: Resource<T>
  /** What it asks for, in the words of a ReplicaSet; kind and metadata stay its own. */
  asReplicaSet(object: Frozen<T>): Frozen<ReplicaSet>
  statusOf(status: ReplicaSetStatus): T['status']
  /** The objects that have the same controller, itself included: their pods weigh in when some must go. */
  siblings(object: Frozen<T>): readonly Frozen<KubeObject>[]
}

type Replicating = KubeObject & { spec?: object | undefined; status?: object | undefined }

export function createReplicaController<T extends Replicating>(context: ControllerContext, kind: ReplicaKind<T>) {
  const { client, clock } = context
  const podInformer = context.informers.of(pods)
  const informer = context.informers.of(kind.resource)
  podInformer.addIndexers(podControllerIndexers)
  podInformer.addTallies(replicaTallies)
  const podControl = createPodControl(client, context.events(kind.component))
  const pace = createPodPace(clock, podInformer.store)
  const expectations = createExpectations(clock)
  const ageRatios = context.metrics.histogram({
    name: 'replicaset_controller_sorting_deletion_age_ratio',
    help: "The ages of pods chosen for deletion against the youngest pod's. Only of ready pods; should be less than 2.",
    buckets: exponentialBuckets(0.25, 2, 6),
  })
  const reconciler = createReconciler(context, { name: kind.name, queueName: kind.queueName, workers: 5, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  const selectorFor = (object: Frozen<T>) => kind.asReplicaSet(object).spec.selector
  const concerns = (old: Frozen<Pod>, pod: Frozen<Pod>, object: Frozen<T>) => changesCounts(old, pod, kind.asReplicaSet(object).spec)
  reconciler.watch(podInformer, ownedPodHandler({ informer, queue: reconciler.queue, expectations, selectorFor, concerns }))
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const object = informer.store.get(key)
    if (!object) {
      expectations.forget(key)
      return
    }
    const set = kind.asReplicaSet(object)
    // Check expectations before reading the pods: satisfied ones are in the cache already.
    const maySync = expectations.satisfied(key)
    const own = await ownPods(object, set, signal)
    const { failure, waitMs }: Managed = maySync && !set.metadata.deletionTimestamp ? await manageReplicas(key, set, own, signal) : {}
    const status = replicaSetStatus(set, own.counts(), failure === undefined ? undefined : messageOf(failure), clock.now())
    await updateStatus(object, kind.statusOf(status), signal)
    if (failure !== undefined) throw failure
    const waits = [waitMs, msUntilNextAvailable(set, own.active, clock.now())].filter((ms) => ms !== undefined)
    return waits.length > 0 ? { requeueAfterMs: least(waits) } : undefined
  }

  /** The pods that count, after adopting and releasing. */
  async function ownPods(object: Frozen<T>, set: Frozen<ReplicaSet>, signal: AbortSignal): Promise<CountedPods> {
    const { store } = podInformer
    const selector = selectorOf(set.spec.selector)
    const [uid, orphan] = [set.metadata.uid ?? '', `orphan:${set.metadata.namespace}`]
    const related = () => relatedPods(object)
    const known = countsOfTally(set, selector, { owned: store.tally(replicaTally, uid), orphans: store.tally(replicaTally, orphan) })
    if (known) {
      const isOwn = (pod: Frozen<Pod>) => isPodActive(pod) && decide(pod, set, selector) === 'keep'
      return { counts: () => known, count: known.active, active: () => store.byIndex(controllerUidIndex, uid).filter(isOwn), related }
    }
    const owned = store.byIndex(controllerUidIndex, uid)
    const candidates = [...owned, ...store.byIndex(controllerUidIndex, orphan)].filter(isPodActive)
    const active = await claim(candidates, { context, owner: set, ownerResource: kind.resource, resource: pods, selector, signal })
    return { counts: () => countsOfPods(set, owned, active, clock.now()), count: active.length, active: () => active, related }
  }

  /** Carries out the plan. */
  async function manageReplicas(key: string, set: Frozen<ReplicaSet>, own: CountedPods, signal: AbortSignal): Promise<Managed> {
    const plan = planReplicas(set, own, clock.now())
    if (plan.create > 0) {
      const { count, waitMs } = pace.take(set.metadata.namespace, plan.create)
      expectations.expectCreations(key, count)
      const { successes, error } = await slowStartBatch(clock, count, async () => {
        try {
          await podControl.create(set, podFromTemplate(set.spec.template ?? {}, set), signal)
        } catch (error) {
          // The namespace is going away: there is nothing to try again.
          if (!isNamespaceTerminating(error)) throw error
        }
      })
      if (successes < count) expectations.creationsFailed(key, count - successes)
      return { failure: error, waitMs }
    }
    if (plan.remove.length === 0) return {}
    if (plan.remove.length < own.count) for (const ratio of deletionAgeRatios(own.active(), plan.remove, clock.now())) ageRatios.observe(ratio)
    expectations.expectDeletions(key, plan.remove.map(keyOf))
    const { error } = await forAllInTurns(clock, plan.remove, async (pod) => {
      try {
        await podControl.delete(set, pod, signal)
      } catch (error) {
        expectations.deletionObserved(key, keyOf(pod))
        if (!isStatus(error, 'NotFound')) throw error
      }
    })
    return { failure: error }
  }

  /** Pods of all that share this one's controller: the Deployment's pods. */
  function relatedPods(object: Frozen<T>): readonly Frozen<Pod>[] {
    return kind.siblings(object).flatMap(({ metadata }) => podInformer.store.byIndex(controllerUidIndex, metadata.uid ?? ''))
  }

  async function updateStatus(object: Frozen<T>, status: T['status'], signal: AbortSignal): Promise<void> {
    if (semanticEqual(status, object.status)) return
    await client.of(kind.resource).updateStatus({ ...object, status } as Frozen<T>, { signal })
  }
}

interface Managed {
  /** The first one. */
  readonly failure?: unknown
  /** When more pods may be created. */
  readonly waitMs?: number | undefined
}

interface CountedPods extends OwnPods {
  /** As of now, where time matters. */
  counts(): ReplicaCounts
}
