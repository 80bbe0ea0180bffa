/**
 * Lets a VolumeAttributesClass go only when no claim and no volume names it (L3). Upstream: pkg/controller/volume/vacprotection (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { VolumeAttributesClass } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { persistentVolumeClaims, persistentVolumes, volumeAttributesClasses } from '#client/builtIn'
import type { Indexers } from '#client/cache/indexer'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'
import { needsProtection, protect } from './shared/protection.ts'

export const volumeAttributesClassProtection: ControllerDescriptor = {
  name: 'volumeattributesclass-protection-controller',
  aliases: [],
  serviceAccount: 'volumeattributesclass-protection-controller',
  create: createProtection,
}

const finalizer = 'kubernetes.io/vac-protection'
const classIndex = 'volumeAttributesClass'
const named = (...names: readonly (string | undefined)[]) => [...new Set(names.filter((name) => name !== undefined && name !== ''))] as string[]
const classesOfVolume = ({ spec }: Frozen<PersistentVolume>) => named(spec?.volumeAttributesClassName)
const classesOfClaim = ({ spec, status }: Frozen<PersistentVolumeClaim>) =>
  named(spec.volumeAttributesClassName, status?.currentVolumeAttributesClassName, status?.modifyVolumeStatus?.targetVolumeAttributesClassName)
const claimIndexers: Indexers<PersistentVolumeClaim> = { [classIndex]: classesOfClaim }
const volumeIndexers: Indexers<PersistentVolume> = { [classIndex]: classesOfVolume }

function createProtection(context: ControllerContext) {
  const informer = context.informers.of(volumeAttributesClasses)
  const claims = context.informers.of(persistentVolumeClaims)
  const volumes = context.informers.of(persistentVolumes)
  claims.addIndexers(claimIndexers)
  volumes.addIndexers(volumeIndexers)
  const client = context.client.of(volumeAttributesClasses)
  const reconciler = createReconciler(context, { name: volumeAttributesClassProtection.name, queueName: 'vacprotection', workers: 1, reconcile })
  const enqueue = (names: readonly string[]) => {
    for (const name of names) reconciler.queue.add(name)
  }
  reconciler.watch(
    informer,
    enqueueSelf<VolumeAttributesClass>(reconciler.queue, (one) => needsProtection(one, finalizer)),
  )
  reconciler.watch(claims, {
    onUpdate: (old, claim) => enqueue(classesOfClaim(old).filter((name) => !classesOfClaim(claim).includes(name))),
    onDelete: (claim) => enqueue(classesOfClaim(claim)),
  })
  reconciler.watch(volumes, {
    onUpdate: (old, volume) => enqueue(classesOfVolume(old).filter((name) => !classesOfVolume(volume).includes(name))),
    onDelete: (volume) => enqueue(classesOfVolume(volume)),
  })
  return reconciler

  function reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    return protect(informer.store.get(name), finalizer, { client, isUsed: () => isUsed(name, signal), signal })
  }

  /** The caches may lag behind: when they have no user of the class, ask the server. */
  async function isUsed(name: string, signal: AbortSignal): Promise<boolean> {
    if (claims.store.byIndex(classIndex, name).length > 0 || volumes.store.byIndex(classIndex, name).length > 0) return true
    const allClaims = await context.client.of(persistentVolumeClaims).list({ signal })
    if (allClaims.items.some((claim) => classesOfClaim(claim).includes(name))) return true
    const allVolumes = await context.client.of(persistentVolumes).list({ signal })
    return allVolumes.items.some((volume) => classesOfVolume(volume).includes(name))
  }
}
