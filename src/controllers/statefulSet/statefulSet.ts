/**
 * Runs StatefulSets (L3): pods with names, hosts and volumes that stay, brought up, updated and taken down in order.
 * plan.ts decides, pods.ts names; this file listens and acts. Upstream: pkg/controller/statefulset (v1.36).
 * Not yet: persistentVolumeClaimRetentionPolicy.whenScaled, maxUnavailable.
 */
import type { ControllerRevision, StatefulSet } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isControlledBy } from '#api/helpers/owners'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { controllerRevisions, persistentVolumeClaims, pods, statefulSets } from '#client/builtIn'
import { createExpectations } from '#client/expectations'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { claim } from '../shared/claim.ts'
import { currentRevision, type History, revisionsToClean } from '../shared/history.ts'
import { controllerUidIndex, podControllerIndexers } from '../shared/indexes.ts'
import { ownedPodHandler } from '../shared/ownedPodHandler.ts'
import { isNamespaceTerminating, messageOf } from '../shared/podControl.ts'
import { planStatefulSet, type Revisions, statefulSetStatus } from './plan.ts'
import { ordinalOf, podRevisionLabel, statefulClaims, statefulPod } from './pods.ts'

export const statefulSet: ControllerDescriptor = {
  name: 'statefulset-controller',
  aliases: ['statefulset'],
  serviceAccount: 'statefulset-controller',
  create: createStatefulSetController,
}

function createStatefulSetController(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(statefulSets)
  const podInformer = context.informers.of(pods)
  const claimInformer = context.informers.of(persistentVolumeClaims)
  const revisionInformer = context.informers.of(controllerRevisions)
  podInformer.addIndexers(podControllerIndexers)
  const events = context.events('statefulset-controller')
  const reconciler = createReconciler(context, { name: statefulSet.name, queueName: 'statefulset', workers: 5, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  // Names are fixed, so nothing can be created twice and nothing need be expected.
  reconciler.watch(podInformer, ownedPodHandler({ informer, queue: reconciler.queue, expectations: createExpectations(clock) }))
  reconciler.needs(claimInformer)
  reconciler.needs(revisionInformer)
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const set = informer.store.get(key)
    if (!set) return undefined
    const owned = podInformer.store.byIndex(controllerUidIndex, set.metadata.uid ?? '')
    const orphans = podInformer.store.byIndex(controllerUidIndex, `orphan:${set.metadata.namespace}`).filter((pod) => ordinalOf(set, pod) !== undefined)
    const options = { context, owner: set, ownerResource: statefulSets, resource: pods, selector: selectorOf(set.spec.selector), signal }
    const mine = await claim([...owned, ...orphans], options)
    const known = revisionInformer.lister.list({ namespace: set.metadata.namespace, matches: (revision) => isControlledBy(revision, set) })
    const history = await currentRevision(client, set, known, signal)
    const update = history.current
    const current = known.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update
    const revisions: Revisions = { current: current.metadata.name ?? '', update: update.metadata.name ?? '' }
    let wait: Result | undefined
    if (!set.metadata.deletionTimestamp) {
      const plan = planStatefulSet(set, mine, revisions, clock.now())
      for (const { ordinal, updated } of plan.create) await create(set, ordinal, updated ? update : current, signal)
      for (const pod of plan.replace) {
        const how = pod.status?.phase === 'Failed' ? ['RecreatingFailedPod', 'failed'] : ['RecreatingTerminatedPod', 'terminated']
        const { namespace, name } = set.metadata
        events.event(set, 'Warning', how[0] ?? '', `StatefulSet ${namespace}/${name} is recreating ${how[1]} Pod ${pod.metadata.name}`)
      }
      for (const pod of [...plan.replace, ...plan.remove]) await remove(set, pod, signal)
      wait = { requeueAfterMs: plan.requeueAfterMs }
    }
    const status = statefulSetStatus(set, mine, revisions, clock.now())
    if (!semanticEqual(status, set.status)) await client.of(statefulSets).updateStatus({ ...set, status } as Frozen<StatefulSet>, { signal })
    await clean(set, history, mine, revisions, signal)
    return wait
  }

  async function create(set: Frozen<StatefulSet>, ordinal: number, revision: Frozen<ControllerRevision>, signal: AbortSignal): Promise<void> {
    const pod = statefulPod(set, ordinal, revision)
    const what = `Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name}`
    for (const wanted of statefulClaims(set, ordinal)) {
      const { namespace, name = '' } = wanted.metadata
      if (claimInformer.lister.get({ namespace, name })) continue
      await attempt(set, `create Claim ${name} ${what}`, () => client.of(persistentVolumeClaims).create(wanted, { signal }))
    }
    await attempt(set, `create ${what}`, () => client.of(pods).create(pod, { signal }))
  }

  async function attempt(set: Frozen<StatefulSet>, what: string, call: () => Promise<unknown>): Promise<void> {
    const ok = what.startsWith('create Claim') ? 'success' : 'successful'
    try {
      await call()
      events.event(set, 'Normal', 'SuccessfulCreate', `${what} ${ok}`)
    } catch (error) {
      if (isStatus(error, 'AlreadyExists') || isNamespaceTerminating(error)) return
      events.event(set, 'Warning', 'FailedCreate', `${what} failed error: ${messageOf(error)}`)
      throw error
    }
  }

  async function remove(set: Frozen<StatefulSet>, { metadata }: Frozen<Pod>, signal: AbortSignal): Promise<void> {
    const what = `delete Pod ${metadata.name} in StatefulSet ${set.metadata.name}`
    try {
      await client.of(pods).delete({ namespace: metadata.namespace, name: metadata.name ?? '' }, { preconditions: { uid: metadata.uid }, signal })
      events.event(set, 'Normal', 'SuccessfulDelete', `${what} successful`)
    } catch (error) {
      if (isStatus(error, 'NotFound')) return
      events.event(set, 'Warning', 'FailedDelete', `${what} failed error: ${messageOf(error)}`)
      throw error
    }
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
