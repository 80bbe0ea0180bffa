/**
 * Removes pods that no other component removes (L3): on deleted nodes, deleted before they were scheduled, or ended and above the threshold.
 * Upstream: pkg/controller/podgc (v1.36).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import { nodes, pods } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createPeriodicCheck } from './framework/periodicCheck.ts'
import { createReconciler } from './framework/reconciler.ts'
import { endPod } from './shared/endPod.ts'
import { nodeNameIndex, podNodeIndexers } from './shared/indexes.ts'

export interface PodGcOptions {
  /** Ended pods that are kept. Default 12,500. */
  readonly terminatedPodGcThreshold?: number | undefined
}

export const podGc: ControllerDescriptor<PodGcOptions> = {
  name: 'pod-garbage-collector-controller',
  aliases: ['podgc'],
  serviceAccount: 'pod-garbage-collector',
  create: createPodGcController,
}

const periodMs = 20_000
/** A node may be created again under its name: pods wait this long before they count as orphaned. */
const quarantineMs = 40_000

function createPodGcController(context: ControllerContext, { terminatedPodGcThreshold: threshold = 12_500 }: PodGcOptions): Component {
  const { client, clock } = context
  const podInformer = context.informers.of(pods)
  const nodeInformer = context.informers.of(nodes)
  podInformer.addIndexers(podNodeIndexers)
  const labels = ['namespace', 'reason']
  const deleted = context.metrics.counter({
    name: 'pod_gc_collector_force_delete_pods_total',
    help: 'How many pods this controller was to end by force.',
    labels,
  })
  const failed = context.metrics.counter({
    name: 'pod_gc_collector_force_delete_pod_errors_total',
    help: 'How many pods this controller could not end by force.',
    labels,
  })
  const missingSinceMs = new Map<string, number>()
  const reconciler = createReconciler(context, { name: podGc.name, workers: 0, reconcile: async () => undefined })
  const { changed, run } = createPeriodicCheck(context, { name: podGc.name, periodMs, check: collect })
  reconciler.watch(podInformer, { onAdd: changed, onUpdate: changed, onDelete: changed })
  reconciler.watch(nodeInformer, { onAdd: changed, onUpdate: changed, onDelete: changed })
  reconciler.also(run)
  return reconciler

  /** @returns when to look again though nothing changes: at the next turn while something is to be ended, or a node is missing */
  async function collect(signal: AbortSignal): Promise<number> {
    const all = podInformer.store.list()
    const surplus = surplusTerminated(all, threshold)
    await end(surplus, 'terminated', undefined, signal)
    const outOfService = onNodesOutOfService(all, (name) => nodeInformer.store.get(name))
    await end(outOfService, 'out-of-service', undefined, signal)
    for (const nodeName of await goneNodes(signal)) {
      await end(podInformer.store.byIndex(nodeNameIndex, nodeName), 'orphaned', 'PodGC: node no longer exists', signal)
    }
    const unscheduled = all.filter((pod) => pod.metadata.deletionTimestamp !== undefined && !pod.spec.nodeName)
    await end(unscheduled, 'unscheduled', undefined, signal)
    return surplus.length + outOfService.length + missingSinceMs.size + unscheduled.length > 0 ? 0 : Number.POSITIVE_INFINITY
  }

  /** One pod that cannot be ended keeps no other. */
  async function end(ending: readonly Frozen<Pod>[], cause: string, message: string | undefined, signal: AbortSignal): Promise<void> {
    for (const pod of ending) {
      const labels = { namespace: pod.metadata.namespace ?? '', reason: cause }
      try {
        await endPod(client, pod, { signal, nowMs: clock.now(), ...(message === undefined ? {} : { reason: 'DeletionByPodGC', message }) })
      } catch (error) {
        if (signal.aborted) throw error
        failed.inc(labels)
        context.log.error(error, 'A pod could not be collected', { pod: keyOf(pod), cause })
      }
      deleted.inc(labels)
    }
  }

  /** Names of nodes that pods name, that have been missing for the quarantine, and that the server does not have either. */
  async function goneNodes(signal: AbortSignal): Promise<string[]> {
    const nowMs = clock.monotonicMs()
    const missing = new Set(podInformer.store.indexValues(nodeNameIndex).filter((name) => name !== '' && !nodeInformer.store.get(name)))
    for (const name of missingSinceMs.keys()) if (!missing.has(name)) missingSinceMs.delete(name)
    const gone: string[] = []
    for (const name of missing) {
      const sinceMs = missingSinceMs.get(name) ?? nowMs
      missingSinceMs.set(name, sinceMs)
      if (nowMs - sinceMs < quarantineMs) continue
      try {
        await client.of(nodes).get({ name }, { signal })
      } catch (error) {
        if (!isStatus(error, 'NotFound')) throw error
        gone.push(name)
      }
    }
    return gone
  }
}

/** Ended pods beyond the threshold: evicted ones first, then the oldest. */
function surplusTerminated(all: readonly Frozen<Pod>[], threshold: number): Frozen<Pod>[] {
  if (threshold <= 0) return []
  const ended = all.filter((pod) => isPodTerminal(pod) && !pod.metadata.deletionTimestamp)
  const age = (pod: Frozen<Pod>) => `${pod.status?.reason === 'Evicted' ? 0 : 1} ${pod.metadata.creationTimestamp} ${keyOf(pod)}`
  return ended.length <= threshold ? [] : [...ended].sort((a, b) => (age(a) < age(b) ? -1 : 1)).slice(0, ended.length - threshold)
}

function onNodesOutOfService(all: readonly Frozen<Pod>[], nodeOf: (name: string) => Frozen<Node> | undefined): Frozen<Pod>[] {
  return all.filter((pod) => {
    if (!pod.metadata.deletionTimestamp || !pod.spec.nodeName) return false
    const node = nodeOf(pod.spec.nodeName)
    const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
    return node !== undefined && !ready && node.spec.taints?.some(({ key }) => key === 'node.kubernetes.io/out-of-service') === true
  })
}
