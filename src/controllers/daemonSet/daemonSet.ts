/**
 * Runs one pod of a DaemonSet on each node that it fits (L3). plan.ts decides where, history.ts keeps revisions; this file listens and acts.
 * Upstream: pkg/controller/daemon/daemon_controller.go (v1.36).
 */
import type { DaemonSet } from '#api/gen/types/apps.v1'
import type { Node, Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { least } from '#base/extremes'
import { controllerRevisions, daemonSets, nodes, pods } from '#client/builtIn'
import type { Client } from '#client/client'
import { createExpectations } from '#client/expectations'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { claim } from '../shared/claim.ts'
import { currentRevision, type History, ownRevisions, revisionHash, revisionsToClean } from '../shared/history.ts'
import { controllerUidIndex, podControllerIndexers } from '../shared/indexes.ts'
import { ownedPodHandler } from '../shared/ownedPodHandler.ts'
import { createPodControl, forAllInTurns, isNamespaceTerminating, slowStartBatch } from '../shared/podControl.ts'
import { createEndedPods } from './endedPods.ts'
import {
  daemonPod,
  daemonSetStatus,
  msUntilNextAvailable,
  nodeShouldRun,
  type PodsByNode,
  planPlacement,
  planUpdate,
  revisionHashLabel,
  targetNode,
} from './plan.ts'

export const daemonSet: ControllerDescriptor = {
  name: 'daemonset-controller',
  aliases: ['daemonset'],
  serviceAccount: 'daemon-set-controller',
  create: createDaemonSetController,
}

const burst = 250

function createDaemonSetController(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(daemonSets)
  const podInformer = context.informers.of(pods)
  const nodeInformer = context.informers.of(nodes)
  const revisionInformer = context.informers.of(controllerRevisions)
  podInformer.addIndexers(podControllerIndexers)
  const events = context.events('daemonset-controller')
  const podControl = createPodControl(client, events)
  const expectations = createExpectations(clock)
  const endedPods = createEndedPods(clock, events)
  const reconciler = createReconciler(context, { name: daemonSet.name, queueName: 'daemonset', workers: 2, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  reconciler.watch(podInformer, ownedPodHandler({ informer, queue: reconciler.queue, expectations }))
  reconciler.needs(revisionInformer)
  const enqueueFor = (...versions: Frozen<Node>[]) => {
    for (const set of informer.store.list()) {
      const placed = versions.map((node) => nodeShouldRun(set, node))
      const same = placed.length === 2 && semanticEqual(placed[0], placed[1])
      if (!same && placed.some(({ run, keep }) => run || keep)) reconciler.queue.add(keyOf(set))
    }
  }
  reconciler.watch(nodeInformer, {
    onAdd: (node) => enqueueFor(node),
    onUpdate: (old, node) => {
      const said = ({ metadata, spec }: Frozen<Node>) => [metadata.labels, spec.taints, spec.unschedulable]
      if (!semanticEqual(said(old), said(node))) enqueueFor(old, node)
    },
    onDelete: (node) => enqueueFor(node),
  })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const set = informer.store.get(key)
    if (!set) {
      expectations.forget(key)
      return undefined
    }
    if (semanticEqual(set.spec.selector, {})) {
      events.event(set, 'Warning', 'SelectingAll', 'This daemon set is selecting all pods. A non-empty selector is required.')
      return undefined
    }
    if (set.metadata.deletionTimestamp) return undefined
    const revisions = await ownRevisions(context, daemonSets, set, revisionInformer.lister.list({ namespace: set.metadata.namespace }), signal)
    const history = await currentRevision(client, set, revisions, signal)
    const byNode = await podsByNode(set, signal)
    try {
      const waitMs = expectations.satisfied(key) ? await carryOut(key, set, byNode, history, signal) : undefined
      const waits = [waitMs, msUntilNextAvailable(set, byNode, clock.now())].filter((ms) => ms !== undefined)
      return waits.length > 0 ? { requeueAfterMs: least(waits) } : undefined
    } finally {
      // Also after a failed pod creation: the status then has the current counts.
      const counts = daemonSetStatus(set, nodeInformer.store.list(), byNode, revisionHash(history.current), clock.now())
      const status = history.collisionCount === undefined ? counts : { ...counts, collisionCount: history.collisionCount }
      if (!semanticEqual(status, set.status)) await client.of(daemonSets).updateStatus({ ...set, status } as Frozen<DaemonSet>, { signal })
    }
  }

  /** The next step towards what the set asks for. @returns when another may be due without cause */
  async function carryOut(key: string, set: Frozen<DaemonSet>, byNode: PodsByNode, history: History, signal: AbortSignal): Promise<number | undefined> {
    const hash = revisionHash(history.current)
    const nodes = nodeInformer.store.list()
    const placement = planPlacement(set, nodes, byNode, hash, clock.now())
    const ended = endedPods.replaceable(set, placement.ended)
    const remove = [...placement.remove, ...ended.pods]
    const settled = placement.createOn.length + remove.length === 0
    const rolling = (set.spec.updateStrategy?.type ?? 'RollingUpdate') === 'RollingUpdate'
    const step = settled && rolling ? planUpdate(set, nodes, byNode, hash, clock.now()) : { createOn: placement.createOn, remove }
    await act(key, set, step.createOn.slice(0, burst), step.remove.slice(0, burst), hash, signal)
    if (settled) await clean(client, set, history, byNode, signal)
    return ended.waitMs
  }

  async function podsByNode(set: Frozen<DaemonSet>, signal: AbortSignal): Promise<Map<string, Frozen<Pod>[]>> {
    const owned = podInformer.store.byIndex(controllerUidIndex, set.metadata.uid ?? '')
    const orphans = podInformer.store.byIndex(controllerUidIndex, `orphan:${set.metadata.namespace}`)
    const options = { context, owner: set, ownerResource: daemonSets, resource: pods, selector: selectorOf(set.spec.selector), signal }
    const byNode = new Map<string, Frozen<Pod>[]>()
    for (const pod of await claim([...owned, ...orphans], options)) {
      // The pod has ended and is being deleted: its replacement does not wait for it.
      if (isPodTerminal(pod) && pod.metadata.deletionTimestamp) continue
      const node = targetNode(pod)
      const there = byNode.get(node)
      if (there) there.push(pod)
      else byNode.set(node, [pod])
    }
    return byNode
  }

  async function act(
    key: string,
    set: Frozen<DaemonSet>,
    createOn: readonly string[],
    remove: readonly Frozen<Pod>[],
    hash: string,
    signal: AbortSignal,
  ): Promise<void> {
    if (createOn.length + remove.length === 0) return
    expectations.expect(key, createOn.length, remove.map(keyOf))
    const { successes, error } = await slowStartBatch(clock, createOn.length, async (i) => {
      await podControl.create(set, daemonPod(set, createOn[i] ?? '', hash), signal).catch((error: unknown) => {
        if (!isNamespaceTerminating(error)) throw error
      })
    })
    expectations.creationsFailed(key, createOn.length - successes)
    const removed = await forAllInTurns(clock, remove, (pod) =>
      podControl.delete(set, pod, signal).catch((error: unknown) => {
        expectations.deletionObserved(key, keyOf(pod))
        if (!isStatus(error, 'NotFound')) throw error
      }),
    )
    const failure = error ?? removed.error
    if (failure !== undefined) throw failure
  }
}

async function clean(client: Client, set: Frozen<DaemonSet>, history: History, byNode: PodsByNode, signal: AbortSignal) {
  const used = new Set([...byNode.values()].flat().map(({ metadata }) => metadata.labels?.[revisionHashLabel] ?? ''))
  for (const { metadata } of revisionsToClean(set, history, (revision) => used.has(revisionHash(revision)))) {
    await client
      .of(controllerRevisions)
      .delete({ namespace: metadata.namespace, name: metadata.name ?? '' }, { signal })
      .catch((error: unknown) => {
        if (!isStatus(error, 'NotFound')) throw error
      })
  }
}
