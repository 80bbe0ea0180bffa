/** Turns pod events into keys of the services that select the pods (L3). Upstream: k8s.io/endpointslice/util/controller_utils.go (v1.36). */
import type { Pod, Service } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOfMap } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { EventHandler, SharedInformer } from '#client/cache/sharedInformer'
import type { WorkQueue } from '#client/workqueue/workQueue'

/** @param gatherMs how long a service waits for more changes of its pods */
export function podServiceHandler(informer: SharedInformer<Service>, queue: WorkQueue<string>, gatherMs = 0): EventHandler<Pod> {
  const enqueue = (pod: Frozen<Pod>) => {
    for (const service of informer.lister.list({ namespace: pod.metadata.namespace })) {
      if (service.spec.selector && selectorOfMap(service.spec.selector).matches(pod.metadata.labels ?? {})) queue.addAfter(keyOf(service), gatherMs)
    }
  }
  return {
    onAdd: enqueue,
    onUpdate: (old, pod) => {
      if (old.metadata.resourceVersion === pod.metadata.resourceVersion) return
      const relabelled = !semanticEqual(old.metadata.labels, pod.metadata.labels)
      if (relabelled) enqueue(old)
      if (relabelled || endpointChanged(old, pod)) enqueue(pod)
    },
    onDelete: enqueue,
  }
}

/** Whether a field that endpoints copy has changed. */
function endpointChanged(old: Frozen<Pod>, pod: Frozen<Pod>): boolean {
  const said = (of: Frozen<Pod>) => [
    of.metadata.deletionTimestamp,
    of.status?.phase,
    of.status?.podIP,
    of.status?.podIPs,
    of.status?.conditions?.find(({ type }) => type === 'Ready')?.status,
    of.spec.nodeName,
    of.spec.hostname,
    of.spec.subdomain,
  ]
  return !semanticEqual(said(old), said(pod))
}
