/**
 * Lets a volume go only when it is bound to no claim (L3). Upstream: pkg/controller/volume/pvprotection (v1.36).
 */
import type { PersistentVolume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { persistentVolumes } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'
import { isProtected, mayGo, withFinalizer, withoutFinalizer } from './shared/protection.ts'

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
  const matters = (volume: Frozen<PersistentVolume>) => mayGo(volume, finalizer) || !isProtected(volume, finalizer)
  const reconciler = createReconciler(context, {
    name: persistentVolumeProtection.name,
    queueName: 'pvprotection',
    workers: 1,
    async reconcile(name, signal) {
      const volume = informer.store.get(name)
      if (!volume) return undefined
      if (mayGo(volume, finalizer)) {
        if (volume.status?.phase !== 'Bound') await client.update(withoutFinalizer(volume, finalizer), { signal })
      } else if (!isProtected(volume, finalizer) && !volume.metadata.deletionTimestamp) await client.update(withFinalizer(volume, finalizer), { signal })
      return undefined
    },
  })
  reconciler.watch(informer, enqueueSelf<PersistentVolume>(reconciler.queue, matters))
  return reconciler
}
