/**
 * Deletes pods that do not tolerate their node's NoExecute taints, at once or when their tolerationSeconds are over (L3).
 * Upstream: pkg/controller/tainteviction (v1.36).
 */
import type { Pod, Taint } from '#api/gen/types/core.v1'
import { tolerationToleratesTaint } from '#api/helpers/taints'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { least } from '#base/extremes'
import { parseTime } from '#base/time'
import { nodes, pods } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, type Result } from '../framework/reconciler.ts'
import { endPod } from '../shared/endPod.ts'
import { createEvictionMetrics } from '../shared/evictionMetrics.ts'
import { nodeNameIndex, podNodeIndexers } from '../shared/indexes.ts'

export const taintEviction: ControllerDescriptor = {
  name: 'taint-eviction-controller',
  aliases: [],
  serviceAccount: 'node-controller',
  create: createTaintEvictionController,
}

function createTaintEvictionController(context: ControllerContext) {
  const { client, clock } = context
  const informer = context.informers.of(pods)
  const nodeInformer = context.informers.of(nodes)
  informer.addIndexers(podNodeIndexers)
  const events = context.events('taint-eviction-controller')
  const reconciler = createReconciler(context, { name: taintEviction.name, queueName: 'noexec_taint_pod', workers: 8, reconcile })
  const evictionMetrics = createEvictionMetrics(context.metrics, 'taint_eviction_controller', 'TaintEvictionController')
  /** When the eviction of a pod was planned: its toleration runs from then when the taint has no timeAdded. */
  const planned = new Map<string, number>()
  reconciler.watch(nodeInformer, {
    onAdd: ({ metadata, spec }) => {
      if (noExecuteTaints(spec.taints).length > 0) enqueuePodsOf(metadata.name ?? '')
    },
    onUpdate: (old, node) => {
      const before = JSON.stringify(noExecuteTaints(old.spec.taints))
      if (before !== JSON.stringify(noExecuteTaints(node.spec.taints))) enqueuePodsOf(node.metadata.name ?? '')
    },
  })
  const enqueue = (pod: Frozen<Pod>) => {
    const node = nodeInformer.store.get(pod.spec.nodeName ?? '')
    if (node && noExecuteTaints(node.spec.taints).length > 0) reconciler.queue.add(keyOf(pod))
  }
  reconciler.watch(informer, {
    onAdd: enqueue,
    onUpdate: (old, pod) => {
      if (old.spec.nodeName !== pod.spec.nodeName || old.spec.tolerations !== pod.spec.tolerations) enqueue(pod)
    },
    onDelete: (pod) => void planned.delete(keyOf(pod)),
  })
  return reconciler

  function enqueuePodsOf(node: string): void {
    for (const pod of informer.store.byIndex(nodeNameIndex, node)) reconciler.queue.add(keyOf(pod))
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const pod = informer.store.get(key)
    const node = nodeInformer.store.get(pod?.spec.nodeName ?? '')
    if (!pod || pod.metadata.deletionTimestamp) return undefined
    const dueMs = node ? evictionTime(pod, noExecuteTaints(node.spec.taints), planned.get(key) ?? clock.now()) : undefined
    if (dueMs === undefined) {
      if (planned.delete(key)) events.event(pod, 'Normal', 'TaintManagerEviction', `Cancelling deletion of Pod ${key}`)
      return undefined
    }
    if (!planned.has(key)) planned.set(key, clock.now())
    const waitMs = dueMs - clock.now()
    if (waitMs > 0) return { requeueAfterMs: waitMs }
    events.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${key}`)
    const message = 'Taint manager: deleting due to NoExecute taint'
    await endPod(client, pod, { signal, nowMs: clock.now(), graceful: true, reason: 'DeletionByTaintManager', message })
    evictionMetrics.ended(-waitMs)
    return undefined
  }
}

function noExecuteTaints(taints: readonly Frozen<Taint>[] | undefined): readonly Frozen<Taint>[] {
  return taints?.filter(({ effect }) => effect === 'NoExecute') ?? []
}

/** When the pod must go; undefined when it may stay. The shortest toleration counts, from when its taint came, or from `plannedMs`. */
export function evictionTime(pod: Frozen<Pod>, taints: readonly Frozen<Taint>[], plannedMs: number): number | undefined {
  let dueMs: number | undefined
  for (const taint of taints) {
    const tolerations = pod.spec.tolerations?.filter((toleration) => tolerationToleratesTaint(toleration, taint)) ?? []
    if (tolerations.length === 0) return plannedMs
    const seconds = tolerations.flatMap(({ tolerationSeconds }) => tolerationSeconds ?? [])
    if (seconds.length === 0) continue
    const sinceMs = parseTime(taint.timeAdded ?? '') ?? plannedMs
    dueMs = Math.min(dueMs ?? Number.POSITIVE_INFINITY, sinceMs + Math.max(0, least(seconds)) * 1000)
  }
  return dueMs
}
