/**
 * Keeps count for PodDisruptionBudgets: how many pods may be evicted now (L3). The eviction itself checks and decrements on the API server.
 * Takes back marks of evictions that never came. Upstream: pkg/controller/disruption (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import type { PodDisruptionBudget } from '#api/gen/types/policy.v1'
import { goLabelSelector } from '#api/helpers/goLabelSelector'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import { podDisruptionBudgets, pods } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, type Result } from '../framework/reconciler.ts'
import { budgetStatus, failedStatus, msUntilRecheck, msUntilStale, notDeleted } from './budgetStatus.ts'
import { createExpectedPods } from './expectedPods.ts'

export const disruption: ControllerDescriptor = {
  name: 'disruption-controller',
  aliases: ['disruption'],
  serviceAccount: 'disruption-controller',
  create: createDisruptionController,
}

function createDisruptionController(context: ControllerContext): Component {
  const { client, clock } = context
  const informer = context.informers.of(podDisruptionBudgets)
  const podInformer = context.informers.of(pods)
  const expectedPods = createExpectedPods(context)
  const events = context.events('controllermanager')
  const reconciler = createReconciler(context, { name: disruption.name, queueName: 'disruption', workers: 1, reconcile })
  const stale = createReconciler(context, { name: disruption.name, queueName: 'stale_pod_disruption', workers: 1, reconcile: unmark })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  const enqueueMatching = (pod: Frozen<Pod>) => {
    const matching = informer.lister.list({ namespace: pod.metadata.namespace, matches: ({ spec }) => matches(spec.selector, pod) })
    for (const budget of matching) reconciler.queue.add(keyOf(budget))
    return matching
  }
  const observe = (pod: Frozen<Pod>) => {
    const [first, ...others] = enqueueMatching(pod)
    if (first && others.length > 0) {
      const { namespace, name } = pod.metadata
      const text = `Pod "${namespace}"/"${name}" matches multiple PodDisruptionBudgets.  Chose "${first.metadata.name}" arbitrarily.`
      events.event(pod, 'Warning', 'MultiplePodDisruptionBudgets', text)
    }
    const staleInMs = msUntilStale(pod, clock.now())
    if (staleInMs !== undefined) stale.queue.addAfter(keyOf(pod), staleInMs)
  }
  reconciler.watch(podInformer, { onAdd: observe, onUpdate: (_, pod) => observe(pod), onDelete: enqueueMatching })
  for (const one of expectedPods.informers) reconciler.needs(one)
  stale.needs(podInformer)
  return {
    name: disruption.name,
    run: async (signal) => void (await Promise.all([reconciler.run(signal), stale.run(signal)])),
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const budget = informer.store.get(key)
    if (!budget) return undefined
    try {
      return await sync(budget, signal)
    } catch (error) {
      if (isStatus(error, 'Conflict')) throw error
      await update(budget, failedStatus(budget, messageOf(error), clock.now()), signal)
      return undefined
    }
  }

  async function sync(budget: Frozen<PodDisruptionBudget>, signal: AbortSignal): Promise<Result> {
    const { selector, maxUnavailable, minAvailable } = budget.spec
    const selected = podInformer.lister.list({ namespace: budget.metadata.namespace, matches: (pod) => matches(selector, pod) })
    if (selected.length === 0) events.event(budget, 'Normal', 'NoPods', 'No matching pods found')
    const isRelative = maxUnavailable !== undefined || typeof minAvailable === 'string'
    const { count, unmanaged } = isRelative ? await countExpected(budget, selected, signal) : { count: 0, unmanaged: 0 }
    if (unmanaged > 0) events.event(budget, 'Warning', 'UnmanagedPods', unmanagedText(selector))
    for (const pod of notDeleted(budget, selected, clock.now())) {
      const { namespace } = budget.metadata
      events.event(pod, 'Warning', 'NotDeleted', `Pod was expected by PDB ${namespace}/${budget.metadata.name} to be deleted but it wasn't`)
    }
    const status = budgetStatus(budget, selected, count, clock.now())
    await update(budget, status, signal)
    return { requeueAfterMs: msUntilRecheck(status.disruptedPods, clock.now()) }
  }

  async function countExpected(budget: Frozen<PodDisruptionBudget>, selected: readonly Frozen<Pod>[], signal: AbortSignal) {
    try {
      return await expectedPods.of(selected, signal)
    } catch (error) {
      events.event(budget, 'Warning', 'CalculateExpectedPodCountFailed', `Failed to calculate the number of expected pods: ${messageOf(error)}`)
      throw error
    }
  }

  async function update(budget: Frozen<PodDisruptionBudget>, status: PodDisruptionBudget['status'], signal: AbortSignal): Promise<void> {
    if (semanticEqual(status, budget.status)) return
    await client.of(podDisruptionBudgets).updateStatus({ ...budget, status } as Frozen<PodDisruptionBudget>, { signal })
  }

  /** The pod was marked for an eviction that has not happened in time: clear its DisruptionTarget condition. */
  async function unmark(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const pod = podInformer.store.get(key)
    const staleInMs = pod && msUntilStale(pod, clock.now())
    if (!pod || staleInMs === undefined) return undefined
    if (staleInMs > 0) return { requeueAfterMs: staleInMs }
    const conditions = (pod.status?.conditions ?? []).map((condition) =>
      condition.type === 'DisruptionTarget' ? { type: condition.type, status: 'False', lastTransitionTime: formatTime(clock.now()) } : condition,
    )
    await client.of(pods).updateStatus({ ...pod, status: { ...pod.status, conditions } } as Frozen<Pod>, { signal })
    return undefined
  }
}

/** A budget without a selector chooses nothing, one with an empty selector everything. */
function matches(selector: Frozen<LabelSelector> | undefined, pod: Frozen<Pod>): boolean {
  return selector !== undefined && selectorOf(selector).matches(pod.metadata.labels ?? {})
}

function unmanagedText(selector: Frozen<LabelSelector> | undefined): string {
  return `Pods selected by this PodDisruptionBudget (selector: ${goLabelSelector(selector)}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`
}
