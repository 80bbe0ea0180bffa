/**
 * Work on mounted volumes while their pods run (L3): publishes a volume again, if its type wants that, and grows it when its claim asks for it. It may take long, so
 * that pods do not wait for it, and each volume has one at a time. Upstream: operation_generator.go GenerateExpandInUseVolumeFunc (v1.36).
 */
import { claimNameOf } from '#api/helpers/volumes'
import { messageOf } from '#base/messageOf'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podReference } from '../core/podReference.ts'
import { resolveVolume, type VolumeUse } from './claims.ts'
import type { VolumeOperations } from './volumeOperations.ts'
import type { FrozenVolume, MountedVolume, VolumePlugin } from './volumePlugin.ts'
import type { Waits } from './waits.ts'

/** A volume that a pod wants, and the volumes that are mounted for the pod. */
export interface Wanted {
  readonly pod: FrozenPod
  readonly volume: FrozenVolume
  readonly use: VolumeUse
  readonly ready: Map<string, MountedVolume>
}

export interface Upkeep {
  /** Starts what the mounted volume needs, unless that is under way. */
  start(wanted: Wanted, plugin: VolumePlugin, known: MountedVolume): void
  /** Resolves when no work for the pod is under way. */
  settled(podUid: string): Promise<void>
}

export function createUpkeep({ client, recorder }: Pick<KubeletContext, 'client' | 'recorder'>, operations: VolumeOperations, waits: Waits): Upkeep {
  const underWay = new Map<string, Map<string, Promise<void>>>()

  const work = async ({ pod, volume, use, ready }: Wanted, plugin: VolumePlugin, known: MountedVolume): Promise<void> => {
    const uid = pod.metadata.uid ?? ''
    // A claim that is being deleted is of no more use, and the pod keeps what it has.
    const spec = await resolveVolume(client, pod, volume, use).catch(() => undefined)
    if (!spec) return
    const target = { pod, spec, block: known.block, refresh: true }
    try {
      if (known.isRemounted) ready.set(volume.name, await operations.mount(plugin, target))
      else await operations.grow(plugin, target, known.path)
      waits.succeeded(uid, volume.name)
    } catch (error) {
      const reason = known.isRemounted ? 'FailedMount' : 'VolumeResizeFailed'
      if (waits.failed(uid, volume.name)) recorder.event(podReference(pod), 'Warning', reason, messageOf(error))
    }
  }

  return {
    start: (wanted, plugin, known) => {
      const { pod, volume } = wanted
      const uid = pod.metadata.uid ?? ''
      const isWanted = known.isRemounted || (plugin.expansion && claimNameOf(pod, volume) !== undefined)
      const ofPod = underWay.get(uid) ?? new Map<string, Promise<void>>()
      if (!isWanted || ofPod.has(volume.name) || waits.remainingMs(uid, volume.name) > 0) return
      underWay.set(uid, ofPod)
      const done = work(wanted, plugin, known).finally(() => {
        ofPod.delete(volume.name)
        if (ofPod.size === 0) underWay.delete(uid)
      })
      ofPod.set(volume.name, done)
    },
    settled: async (podUid) => void (await Promise.all(underWay.get(podUid)?.values() ?? [])),
  }
}
