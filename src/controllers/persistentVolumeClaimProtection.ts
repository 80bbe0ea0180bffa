/**
 * Lets a claim go only when no pod uses it any more (L3): keeps the finalizer that admission gave it, and gives it to claims that lack it.
 * Upstream: pkg/controller/volume/pvcprotection (v1.36).
 */
import type { PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { podClaimNames } from '#api/helpers/objectReferences'
import { isControlledBy } from '#api/helpers/owners'
import type { Frozen } from '#api/machinery/meta'
import { persistentVolumeClaims, pods } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'
import { podClaimIndex, podClaimIndexers } from './shared/indexes.ts'
import { needsProtection, protect } from './shared/protection.ts'

export const persistentVolumeClaimProtection: ControllerDescriptor = {
  name: 'persistentvolumeclaim-protection-controller',
  aliases: ['pvc-protection'],
  serviceAccount: 'pvc-protection-controller',
  create: createProtection,
}

const finalizer = 'kubernetes.io/pvc-protection'

function createProtection(context: ControllerContext) {
  const informer = context.informers.of(persistentVolumeClaims)
  const podInformer = context.informers.of(pods)
  podInformer.addIndexers(podClaimIndexers)
  const client = context.client.of(persistentVolumeClaims)
  const reconciler = createReconciler(context, {
    name: persistentVolumeClaimProtection.name,
    queueName: 'pvcprotection',
    workers: 5,
    reconcile: (key, signal) => protect(informer.store.get(key), finalizer, { client, isUsed: (claim) => isUsed(claim, key, signal), signal }),
  })
  const enqueueClaims = (pod: Frozen<Pod>) => {
    for (const name of podClaimNames(pod)) reconciler.queue.add(`${pod.metadata.namespace}/${name}`)
  }
  reconciler.watch(
    informer,
    enqueueSelf<PersistentVolumeClaim>(reconciler.queue, (claim) => needsProtection(claim, finalizer)),
  )
  reconciler.watch(podInformer, { onAdd: enqueueReleased, onUpdate: (_, pod) => enqueueReleased(pod), onDelete: enqueueClaims })
  return reconciler

  /** A pod that has ended, or that never got a node, holds nothing. */
  function enqueueReleased(pod: Frozen<Pod>): void {
    if (isShutDown(pod) || !pod.spec.nodeName) enqueueClaims(pod)
  }

  /** The cache may lack the newest pod: when it has no user of the claim, ask the server. */
  async function isUsed(claim: Frozen<PersistentVolumeClaim>, key: string, signal: AbortSignal): Promise<boolean> {
    if (podInformer.store.byIndex(podClaimIndex, key).some((pod) => podUses(pod, claim))) return true
    const { items } = await context.client.of(pods).list({ namespace: claim.metadata.namespace, signal })
    return items.some((pod) => podUses(pod, claim))
  }
}

/** Only pods with a node: a kubelet does not start a pod whose claim is being deleted. */
export function podUses(pod: Frozen<Pod>, claim: Frozen<PersistentVolumeClaim>): boolean {
  if (!pod.spec.nodeName) return false
  return (pod.spec.volumes ?? []).some(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return persistentVolumeClaim.claimName === claim.metadata.name
    return ephemeral !== undefined && !isShutDown(pod) && `${pod.metadata.name}-${name}` === claim.metadata.name && isControlledBy(claim, pod)
  })
}

/** The kubelet has finished with the pod, or it was force-deleted; finalizers may still keep the object. */
function isShutDown({ metadata }: Frozen<Pod>): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0
}
