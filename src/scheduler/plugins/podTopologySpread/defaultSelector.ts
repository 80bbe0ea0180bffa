/**
 * The default selector for spreading (L3): from the Services that select the pod and from its controller.
 * Upstream: pkg/scheduler/framework/plugins/helper/spread.go DefaultSelector (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { controllerOf } from '#api/helpers/owners'
import { both, everything, type Selector, selectorOf, selectorOfMap } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { replicaSets, replicationControllers, services, statefulSets } from '#client/builtIn'
import type { Handle } from '../../framework/handle.ts'

/** Asks listers; the result for a pod without a service or owner is `everything`. */
export type DefaultSelectorOf = (pod: Frozen<Pod>) => Selector

export function defaultSelectors(handle: Pick<Handle, 'lister'>): DefaultSelectorOf {
  const serviceLister = handle.lister(services)
  const controllers = handle.lister(replicationControllers)
  const sets = { ReplicaSet: handle.lister(replicaSets), StatefulSet: handle.lister(statefulSets) }
  return (pod) => {
    const { namespace = '', labels } = pod.metadata
    const merged: Record<string, string> = {}
    const selecting = serviceLister.list({ namespace, matches: ({ spec }) => hasKeys(spec.selector) && selectorOfMap(spec.selector).matches(labels) })
    for (const service of selecting) Object.assign(merged, service.spec.selector)
    const owner = controllerOf(pod)
    let ofSet = everything
    if (owner?.apiVersion === 'v1' && owner.kind === 'ReplicationController') {
      Object.assign(merged, controllers.get({ namespace, name: owner.name })?.spec.selector)
    } else if (owner?.apiVersion === 'apps/v1' && (owner.kind === 'ReplicaSet' || owner.kind === 'StatefulSet')) {
      const set = sets[owner.kind].get({ namespace, name: owner.name })
      if (set) ofSet = selectorOf(set.spec.selector)
    }
    return both(selectorOfMap(merged), ofSet)
  }
}

function hasKeys(map: Readonly<Record<string, string>> | undefined): boolean {
  for (const _ in map) return true
  return false
}
