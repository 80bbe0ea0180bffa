/**
 * Turns pod events into keys of the controllers that own, owned or might adopt the pods (L3). Upstream: addPod, updatePod and deletePod of
 * pkg/controller/replicaset, and of every controller that is built like it (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { controllerOf } from '#api/helpers/owners'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import type { EventHandler, SharedInformer } from '#client/cache/sharedInformer'
import type { Expectations } from '#client/expectations'
import type { WorkQueue } from '#client/workqueue/workQueue'

type Selecting = KubeObject & { spec?: { selector?: LabelSelector | undefined } | undefined }

export interface OwnedPodHandlerOptions<T extends KubeObject> {
  readonly informer: SharedInformer<T>
  readonly queue: WorkQueue<string>
  readonly expectations: Expectations
  /** Default: the object's spec.selector. */
  readonly selectorFor?: ((object: Frozen<T>) => Frozen<LabelSelector> | undefined) | undefined
  /** Whether an update of a pod that stays the owner's concerns the owner. Default: each does. */
  readonly concerns?: ((old: Frozen<Pod>, pod: Frozen<Pod>, owner: Frozen<T>) => boolean) | undefined
}

const ownSelector = (object: Frozen<KubeObject>) => (object as Frozen<Selecting>).spec?.selector

export function ownedPodHandler<T extends KubeObject>({
  informer,
  queue,
  expectations,
  selectorFor = ownSelector as (object: Frozen<T>) => Frozen<LabelSelector> | undefined,
  concerns = () => true,
}: OwnedPodHandlerOptions<T>): EventHandler<Pod> {
  const { kind } = informer.resource
  const ownerOf = (pod: Frozen<Pod>): Frozen<T> | undefined => {
    const controller = controllerOf(pod)
    if (controller?.kind !== kind) return undefined
    const owner = informer.lister.get({ namespace: pod.metadata.namespace, name: controller.name })
    return owner?.metadata.uid === controller.uid ? owner : undefined
  }
  const enqueueOwner = (pod: Frozen<Pod>, matters: (owner: Frozen<T>) => boolean = () => true) => {
    const owner = ownerOf(pod)
    if (!owner || !matters(owner)) return undefined
    const key = keyOf(owner as Frozen<KubeObject>)
    queue.add(key)
    return key
  }
  const enqueueMatching = (pod: Frozen<Pod>) => {
    for (const object of informer.lister.list({ namespace: pod.metadata.namespace })) {
      const selector = selectorFor(object)
      if (selector && selectorOf(selector).matches(pod.metadata.labels ?? {})) queue.add(keyOf(object as Frozen<KubeObject>))
    }
  }
  const gone = (pod: Frozen<Pod>) => {
    const controller = controllerOf(pod)
    if (controller?.kind !== kind) return
    const key = keyOf({ metadata: { namespace: pod.metadata.namespace, name: controller.name } })
    expectations.deletionObserved(key, keyOf(pod))
    queue.add(key)
  }
  return {
    onAdd: (pod) => {
      if (pod.metadata.deletionTimestamp) gone(pod)
      else if (controllerOf(pod)) {
        const key = enqueueOwner(pod)
        if (key !== undefined) expectations.creationObserved(key)
      } else enqueueMatching(pod)
    },
    onUpdate: (old, pod) => {
      if (old.metadata.resourceVersion === pod.metadata.resourceVersion) return
      if (pod.metadata.deletionTimestamp) {
        gone(pod)
        return
      }
      const [before, after] = [controllerOf(old), controllerOf(pod)]
      const moved = before?.uid !== after?.uid
      if (moved && before) enqueueOwner(old)
      if (after) enqueueOwner(pod, (owner) => moved || concerns(old, pod, owner))
      else if (moved || !semanticEqual(old.metadata.labels, pod.metadata.labels)) enqueueMatching(pod)
    },
    onDelete: gone,
  }
}
