/**
 * Runs StatefulSets (L3): pods with names, hosts and volumes that stay, brought up, updated and taken down in order.
 * plan.ts decides, podControl.ts creates and deletes; this file listens and calls them. Upstream: pkg/controller/statefulset (v1.36).
 */
import type { ControllerRevision, StatefulSet } from '#api/gen/types/apps.v1'
import type { PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { type FeatureGateSettings, featureEnabled } from '#base/featureGates'
import { controllerRevisions, persistentVolumeClaims, pods, statefulSets } from '#client/builtIn'
import { createExpectations } from '#client/expectations'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { claim } from '../shared/claim.ts'
import { currentRevision, type History, ownRevisions, revisionsToClean } from '../shared/history.ts'
import { controllerUidIndex, podControllerIndexers } from '../shared/indexes.ts'
import { ownedPodHandler } from '../shared/ownedPodHandler.ts'
import { slowStartBatch } from '../shared/podControl.ts'
import { createPodPace } from '../shared/podPace.ts'
import { planStatefulSet, type Revisions, statefulSetStatus } from './plan.ts'
import { createStatefulPodControl } from './podControl.ts'
import { ordinalOf, podRevisionLabel } from './pods.ts'

/** Feature gates that the controller reads. */
export const statefulSetFeatures = ['MaxUnavailableStatefulSet'] as const

export interface StatefulSetOptions {
  /** Values of --feature-gates; absent gates have their default of v1.36. */
  readonly featureGates?: FeatureGateSettings | undefined
}

export const statefulSet: ControllerDescriptor<StatefulSetOptions> = {
  name: 'statefulset-controller',
  aliases: ['statefulset'],
  serviceAccount: 'statefulset-controller',
  create: createStatefulSetController,
}

function createStatefulSetController(context: ControllerContext, { featureGates = {} }: StatefulSetOptions) {
  const { client, clock } = context
  const informer = context.informers.of(statefulSets)
  const podInformer = context.informers.of(pods)
  const claimInformer = context.informers.of(persistentVolumeClaims)
  const revisionInformer = context.informers.of(controllerRevisions)
  podInformer.addIndexers(podControllerIndexers)
  const events = context.events('statefulset-controller')
  const pace = createPodPace(clock, podInformer.store)
  const reconciler = createReconciler(context, { name: statefulSet.name, queueName: 'statefulset', workers: 5, reconcile })
  const podControl = createStatefulPodControl({ client, events, claims: claimInformer })
  const features = { maxUnavailable: featureEnabled(featureGates, 'MaxUnavailableStatefulSet') }
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  // Names are fixed, so nothing can be created twice and nothing need be expected.
  reconciler.watch(podInformer, ownedPodHandler({ informer, queue: reconciler.queue, expectations: createExpectations(clock) }))
  reconciler.watch(claimInformer, { onDelete: enqueueUsers })
  reconciler.needs(revisionInformer)
  return reconciler

  /** A pod may wait for the end of a claim of its name. */
  function enqueueUsers({ metadata: { namespace, name = '' } }: Frozen<PersistentVolumeClaim>): void {
    for (const set of informer.lister.list({ namespace })) {
      const mounts = set.spec.volumeClaimTemplates?.some((template) => name.startsWith(`${template.metadata.name}-${set.metadata.name}-`))
      if (mounts) reconciler.queue.add(keyOf(set))
    }
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const set = informer.store.get(key)
    if (!set) return undefined
    const owned = podInformer.store.byIndex(controllerUidIndex, set.metadata.uid ?? '')
    const orphans = podInformer.store.byIndex(controllerUidIndex, `orphan:${set.metadata.namespace}`).filter((pod) => ordinalOf(set, pod) !== undefined)
    const options = { context, owner: set, ownerResource: statefulSets, resource: pods, selector: selectorOf(set.spec.selector), signal }
    const mine = await claim([...owned, ...orphans], options)
    const known = await ownRevisions(context, statefulSets, set, revisionInformer.lister.list({ namespace: set.metadata.namespace }), signal)
    const history = await currentRevision(client, set, known, signal)
    const update = history.current
    const current = known.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update
    const revisions: Revisions = { current: current.metadata.name ?? '', update: update.metadata.name ?? '' }
    try {
      return set.metadata.deletionTimestamp ? undefined : await carryOut(set, mine, revisions, { current, update }, signal)
    } finally {
      // Also after a failed pod creation: the status then has the current counts.
      const counts = statefulSetStatus(set, mine, revisions, clock.now())
      const status = { ...counts, collisionCount: history.collisionCount ?? 0 }
      if (!semanticEqual(status, set.status)) await client.of(statefulSets).updateStatus({ ...set, status } as Frozen<StatefulSet>, { signal })
      await clean(set, history, mine, revisions, signal)
    }
  }

  async function carryOut(
    set: Frozen<StatefulSet>,
    mine: readonly Frozen<Pod>[],
    names: Revisions,
    { current, update }: Record<keyof Revisions, Frozen<ControllerRevision>>,
    signal: AbortSignal,
  ): Promise<Result> {
    for (const pod of mine) await podControl.settleClaims(set, pod, signal)
    const plan = planStatefulSet(set, mine, names, clock.now(), features)
    const { count, waitMs } = pace.take(set.metadata.namespace, plan.create.length)
    const { error } = await slowStartBatch(clock, count, async (i) => {
      const { ordinal = 0, updated } = plan.create[i] ?? {}
      await podControl.create(set, ordinal, updated ? update : current, signal)
    })
    if (error !== undefined) throw error
    for (const pod of plan.mend) await podControl.mendIdentity(set, pod, signal)
    for (const pod of plan.remove) await podControl.remove(set, pod, signal)
    return { requeueAfterMs: waitMs ?? plan.requeueAfterMs }
  }

  async function clean(set: Frozen<StatefulSet>, history: History, mine: readonly Frozen<Pod>[], revisions: Revisions, signal: AbortSignal): Promise<void> {
    const used = new Set([revisions.current, revisions.update, ...mine.map(({ metadata }) => metadata.labels?.[podRevisionLabel] ?? '')])
    for (const { metadata } of revisionsToClean(set, history, (revision) => used.has(revision.metadata.name ?? ''))) {
      await client
        .of(controllerRevisions)
        .delete({ namespace: metadata.namespace, name: metadata.name ?? '' }, { signal })
        .catch((error: unknown) => {
          if (!isStatus(error, 'NotFound')) throw error
        })
    }
  }
}
