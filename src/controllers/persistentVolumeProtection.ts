/**
 * Lets a volume go only when it is bound to no claim (L3). Upstream: pkg/controller/volume/pvprotection (v1.36).
 */
import type { PersistentVolume } from '#api/gen/types/core.v1'
import { persistentVolumes } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'
import { needsProtection, protect } from './shared/protection.ts'

export const persistentVolumeProtection: ControllerDescriptor = {
  name: 'persistentvolume-protection-controller',
  aliases: ['pv-protection'],
  serviceAccount: 'pv-protection-controller',
  create: createProtection,
}

const finalizer = 'kubernetes.io/pv-protection'

function createProtection(context: ControllerContext) {
  const informer = context.informers.of(persistentVolumes)
  const client = context.client.of(persistentVolumes)
  const reconciler = createReconciler(context, {
    name: persistentVolumeProtection.name,
    queueName: 'pvprotection',
    workers: 1,
    reconcile: (name, signal) => protect(informer.store.get(name), finalizer, { client, isUsed: ({ status }) => status?.phase === 'Bound', signal }),
  })
  reconciler.watch(
    informer,
    enqueueSelf<PersistentVolume>(reconciler.queue, (volume) => needsProtection(volume, finalizer)),
  )
  return reconciler
}
