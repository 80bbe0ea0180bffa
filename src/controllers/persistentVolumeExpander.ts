/**
 * Hands the expansion of a claim to the CSI resizer (L3): records an Event and, for migrated volumes, sets the resizer's annotation. No plugin in this process
 * resizes volumes.
 * The external resizers and the kubelet write conditions and sizes. Upstream: pkg/controller/volume/expand (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { volumeAnnotations } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import { messageOf } from '#base/messageOf'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler } from './framework/reconciler.ts'
import { driverInsteadOf, migratedPluginOf } from './shared/csiMigration.ts'

export const persistentVolumeExpander: ControllerDescriptor = {
  name: 'persistentvolume-expander-controller',
  aliases: ['persistentvolume-expander'],
  serviceAccount: 'expand-controller',
  create: createExpander,
}

type Claim = Frozen<PersistentVolumeClaim>

const wanted = ({ spec }: Claim) => spec.resources?.requests?.storage ?? '0'
const has = ({ status }: Claim) => status.capacity?.storage ?? '0'

function createExpander(context: ControllerContext) {
  const { client } = context
  const claims = context.informers.of(persistentVolumeClaims)
  const events = context.events('volume_expand')
  const reconciler = createReconciler(context, { name: persistentVolumeExpander.name, queueName: 'volume_expand', workers: 10, reconcile })
  const enqueue = (claim: Claim) => {
    if (claim.status.phase === 'Bound') reconciler.queue.add(keyOf(claim))
  }
  reconciler.watch(claims, {
    onAdd: enqueue,
    onUpdate: (old, claim) => {
      if (compareQuantities(wanted(claim), wanted(old)) > 0 || compareQuantities(has(claim), has(old)) > 0) enqueue(claim)
    },
  })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<undefined> {
    const claim = claims.store.get(key)
    if (!claim) return
    const volume = await client.of(persistentVolumes).get({ name: claim.spec.volumeName ?? '' }, { signal })
    const { claimRef } = volume.spec
    if (claimRef?.namespace !== claim.metadata.namespace || claimRef?.uid !== claim.metadata.uid)
      throw new Error(`persistent Volume is not bound to PVC being updated : ${key}`)
    if (compareQuantities(wanted(claim), has(claim)) <= 0 && volume.metadata.annotations?.[volumeAnnotations.preResizeCapacity] === undefined) return
    await handOver(claim, volume, signal)
  }

  async function handOver(claim: Claim, volume: Frozen<PersistentVolume>, signal: AbortSignal): Promise<void> {
    const plugin = migratedPluginOf(volume)
    if (plugin === undefined) return events.event(claim, 'Normal', 'ExternalExpanding', 'waiting for an external controller to expand this PVC')
    events.event(claim, 'Normal', 'ExternalExpanding', `CSI migration enabled for ${plugin}; waiting for external resizer to expand the pvc`)
    const { namespace, name = '', annotations } = claim.metadata
    const resizer = driverInsteadOf(plugin)
    if (annotations?.[volumeAnnotations.storageResizer] === resizer) return
    const patch = { metadata: { annotations: { [volumeAnnotations.storageResizer]: resizer } } }
    try {
      await client.of(persistentVolumeClaims).patch({ namespace, name }, 'merge', patch, { subresource: 'status', signal })
    } catch (error) {
      const message = `error setting resizer annotation to pvc ${keyOf(claim)}, with error ${messageOf(error)}`
      events.event(claim, 'Warning', 'ExternalExpanding', message)
      throw new Error(message, { cause: error })
    }
  }
}
