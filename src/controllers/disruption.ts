/**
 * Keeps count for PodDisruptionBudgets: how many pods may be evicted now (L3). The eviction itself checks and decrements on the API server.
 * Upstream: pkg/controller/disruption (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Condition } from '#api/gen/types/meta.v1'
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '#api/gen/types/policy.v1'
import { controllerOf } from '#api/helpers/owners'
import { isPodReady } from '#api/helpers/pods'
import { setStatusCondition } from '#api/machinery/conditions'
import { semanticEqual } from '#api/machinery/equality'
import { scaledValue } from '#api/machinery/intOrString'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { parseTime } from '#base/time'
import { deployments, podDisruptionBudgets, pods, replicaSets, replicationControllers, statefulSets } from '#client/builtIn'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from './framework/reconciler.ts'

export const disruption: ControllerDescriptor = {
  name: 'disruption-controller',
  aliases: ['disruption'],
  serviceAccount: 'disruption-controller',
  create: createDisruptionController,
}

/** An eviction that was granted and whose pod is still not being deleted after this long did not happen. */
const deletionTimeoutMs = 2 * 60_000

type Scaled = KubeObject & { spec?: { replicas?: number | undefined } | undefined }

function createDisruptionController(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(podDisruptionBudgets)
  const podInformer = context.informers.of(pods)
  const scaled: Readonly<Record<string, SharedInformer<Scaled>>> = {
    ReplicaSet: context.informers.of(replicaSets) as unknown as SharedInformer<Scaled>,
    Deployment: context.informers.of(deployments) as unknown as SharedInformer<Scaled>,
    StatefulSet: context.informers.of(statefulSets) as unknown as SharedInformer<Scaled>,
    ReplicationController: context.informers.of(replicationControllers) as unknown as SharedInformer<Scaled>,
  }
  const events = context.events('controllermanager')
  const reconciler = createReconciler(context, { name: disruption.name, queueName: 'disruption', workers: 1, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  const enqueueMatching = (pod: Frozen<Pod>) => {
    for (const budget of informer.lister.list({ namespace: pod.metadata.namespace })) {
      if (budget.spec.selector && selectorOf(budget.spec.selector).matches(pod.metadata.labels ?? {})) reconciler.queue.add(keyOf(budget))
    }
  }
  reconciler.watch(podInformer, { onAdd: enqueueMatching, onUpdate: (_, pod) => enqueueMatching(pod), onDelete: enqueueMatching })
  for (const one of Object.values(scaled)) reconciler.needs(one)
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const budget = informer.store.get(key)
    if (!budget) return undefined
    const selector = selectorOf(budget.spec.selector)
    const selected = podInformer.lister.list({ namespace: budget.metadata.namespace, matches: ({ metadata }) => selector.matches(metadata.labels ?? {}) })
    if (selected.length === 0) events.event(budget, 'Normal', 'NoPods', 'No matching pods found')
    const status = budgetStatus(budget, selected, expectedByControllers(selected), clock.now())
    if (!semanticEqual(status, budget.status)) {
      await client.of(podDisruptionBudgets).updateStatus({ ...budget, status } as Frozen<PodDisruptionBudget>, { signal })
    }
    return { requeueAfterMs: Object.keys(status.disruptedPods ?? {}).length > 0 ? deletionTimeoutMs : undefined }
  }

  /** The pods that the selected ones' controllers want; several pods of one controller count it once. */
  function expectedByControllers(selected: readonly Frozen<Pod>[]): number {
    const replicas = new Map<string, number>()
    for (const pod of selected) {
      const owner = scaledOwner(pod, pod.metadata.namespace)
      if (owner) replicas.set(owner.metadata.uid ?? '', owner.spec?.replicas ?? 1)
    }
    return [...replicas.values()].reduce((sum, count) => sum + count, 0)
  }

  function scaledOwner(object: Frozen<KubeObject>, namespace: string | undefined): Frozen<Scaled> | undefined {
    const controller = controllerOf(object)
    const owner = controller && scaled[controller.kind]?.lister.get({ namespace, name: controller.name })
    if (!owner || owner.metadata.uid !== controller.uid) return undefined
    return controller.kind === 'ReplicaSet' ? (scaledOwner(owner, namespace) ?? owner) : owner
  }
}

/** @param expected what the pods' controllers want together; counts where the budget is relative to it. */
export function budgetStatus(
  budget: Frozen<PodDisruptionBudget>,
  selected: readonly Frozen<Pod>[],
  expected: number,
  nowMs: number,
): PodDisruptionBudgetStatus {
  const { maxUnavailable, minAvailable } = budget.spec
  const disruptedPods = stillDisrupted(budget, selected, nowMs)
  const currentHealthy = selected.filter((pod) => isPodReady(pod) && !pod.metadata.deletionTimestamp && !((pod.metadata.name ?? '') in disruptedPods)).length
  let expectedPods = selected.length
  let desiredHealthy = 0
  if (maxUnavailable !== undefined) {
    expectedPods = expected
    desiredHealthy = Math.max(0, expected - (scaledValue(maxUnavailable, expected, true) ?? 0))
  } else if (typeof minAvailable === 'number') desiredHealthy = minAvailable
  else if (minAvailable !== undefined) {
    expectedPods = expected
    desiredHealthy = scaledValue(minAvailable, expected, true) ?? 0
  }
  const disruptionsAllowed = expectedPods > 0 ? Math.max(0, currentHealthy - desiredHealthy) : 0
  const conditions: Condition[] = (budget.status?.conditions ?? []).map((condition) => ({ ...condition }))
  const { generation } = budget.metadata
  const allowed = disruptionsAllowed > 0 ? { status: 'True', reason: 'SufficientPods' } : { status: 'False', reason: 'InsufficientPods' }
  setStatusCondition(conditions, { type: 'DisruptionAllowed', ...allowed, message: '', observedGeneration: generation }, nowMs)
  return {
    ...(Object.keys(disruptedPods).length > 0 ? { disruptedPods } : {}),
    disruptionsAllowed,
    currentHealthy,
    desiredHealthy,
    expectedPods,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    conditions,
  }
}

function stillDisrupted(budget: Frozen<PodDisruptionBudget>, selected: readonly Frozen<Pod>[], nowMs: number): Record<string, string> {
  const there = budget.status?.disruptedPods ?? {}
  const waiting = selected.flatMap(({ metadata }): [string, string][] => {
    const time = there[metadata.name ?? '']
    const expired = time === undefined || (parseTime(time) ?? 0) + deletionTimeoutMs < nowMs
    return expired || metadata.deletionTimestamp ? [] : [[metadata.name ?? '', time]]
  })
  return Object.fromEntries(waiting)
}
