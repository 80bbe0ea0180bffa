/**
 * Carries out the reclaim policy of a released volume (L3): retain, recycle, or delete together with its storage.
 * Upstream: pkg/controller/volume/persistentvolume/pv_controller.go reclaimVolume, recycleVolumeOperation, deleteVolumeOperation (v1.36).
 */
import type { PersistentVolume, Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import { volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { LruCache } from '#base/lruCache'
import { messageOf } from '#base/messageOf'
import type { ControllerContext } from '../framework/controller.ts'
import { withoutDeletionFinalizer } from '../shared/csiMigration.ts'
import type { BinderMetrics } from './binderMetrics.ts'
import { type Binding, failVolume, unbind } from './binding.ts'
import type { BinderOptions } from './options.ts'
import { recycle, recyclerPod } from './recycling.ts'
import { isReleased } from './volumePlan.ts'
import { deleterOf, pluginNameOf } from './volumePlugins.ts'

type BoundVolume = Frozen<PersistentVolume>

export interface Reclaiming extends Binding {
  readonly context: ControllerContext
  readonly options: BinderOptions
  readonly metrics: BinderMetrics
  /** By namespace and name, as the cache has it. */
  readonly claimOf: Parameters<typeof isReleased>[1]
  readonly podsOf: (claimKey: string) => readonly Frozen<Pod>[]
}

export interface Reclaimer {
  /** Deletion is complete when it returns; recycling continues in the background, once at a time for each volume. */
  reclaim(volume: BoundVolume, signal: AbortSignal): Promise<void>
  /** Resolves when nothing is being emptied any more. */
  ended(): Promise<void>
}

/** A directory whose volume was forgotten is removed again, which changes nothing. */
const mostEmptied = 1000

export function createReclaimer(deps: Reclaiming): Reclaimer {
  const { context, options, volumes, events, metrics, claimOf, podsOf } = deps
  const recycling = new Map<string, Promise<void>>()
  /** By UID, volumes whose directory is gone: they may stay for their other finalizers, and change meanwhile. */
  const emptied = new LruCache<string, { readonly path: string }>(mostEmptied)

  return {
    async reclaim(volume, signal) {
      const { name = '', annotations } = volume.metadata
      // The driver that has taken over looks after it.
      if (annotations?.[volumeAnnotations.migratedTo]) return
      const policy = volume.spec.persistentVolumeReclaimPolicy
      if (policy === 'Delete') return remove(volume, signal)
      if (policy === 'Retain') return
      if (policy !== 'Recycle') return failVolume(deps, volume, 'VolumeUnknownReclaimPolicy', 'Volume has unrecognized PersistentVolumeReclaimPolicy', signal)
      if (recycling.has(name)) return
      const running = empty(name, signal)
        .catch((error: unknown) => {
          if (!signal.aborted) context.log.v(3).info('Could not recycle a volume, trying again later', { volume: name, error: messageOf(error) })
        })
        .finally(() => recycling.delete(name))
      recycling.set(name, running)
    },
    ended: async () => void (await Promise.all(recycling.values())),
  }

  /** As it is now, if it still is to be reclaimed. */
  async function current(name: string, signal: AbortSignal): Promise<BoundVolume | undefined> {
    try {
      const volume = await volumes.get({ name }, { signal })
      return isReleased(volume, claimOf) ? volume : undefined
    } catch (error) {
      if (isStatus(error, 'NotFound')) return undefined
      throw error
    }
  }

  async function remove(known: BoundVolume, signal: AbortSignal): Promise<void> {
    const name = known.metadata.name ?? ''
    metrics.begins(name, pluginNameOf(known), 'delete')
    const volume = await current(name, signal)
    if (!volume) return
    const deleter = deleterOf(volume)
    if (deleter.kind === 'external') return
    try {
      if (deleter.kind === 'none') throw new Error(deleter.problem)
      await removeOnce(volume.metadata.uid ?? '', deleter.path)
    } catch (error) {
      metrics.failed(name)
      return failVolume(deps, volume, 'VolumeFailedDelete', messageOf(error), signal)
    }
    const free = withoutDeletionFinalizer(volume)
    if (free !== volume) await volumes.update(free, { signal })
    await volumes.delete({ name }, { signal }).catch((error: unknown) => {
      if (!isStatus(error, 'NotFound')) throw error
    })
  }

  async function removeOnce(uid: string, path: string): Promise<void> {
    if (emptied.get(uid)?.path === path) return
    await removeHostPath(path)
    emptied.set(uid, { path })
  }

  async function removeHostPath(path: string): Promise<void> {
    if (!/^\/tmp\/.+/.test(path)) throw new Error(`host_path deleter only supports /tmp/.+ but received provided ${path}`)
    const { hostPaths } = options
    if (!hostPaths) throw new Error(`no access to ${path}: the controllers were not given their machine's directories`)
    await hostPaths.remove(path)
  }

  async function empty(name: string, signal: AbortSignal): Promise<void> {
    const volume = await current(name, signal)
    const claimRef = volume?.spec.claimRef
    if (!volume || !claimRef) return
    const claimKey = `${claimRef.namespace}/${claimRef.name}`
    const users = podsOf(claimKey).filter((pod) => !isPodTerminal(pod))
    // A claim of this name that is there uses another volume, and so do its pods.
    if (users.length > 0 && !claimOf(claimKey)) {
      const list = users.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort()
      return events.event(volume, 'Normal', 'VolumeFailedRecycle', `Volume is used by pods: ${list.join(',')}`)
    }
    const pod = recyclerPod(volume, options.volumeBinding ?? {})
    if (!pod) return failVolume(deps, volume, 'VolumeFailedRecycle', 'No recycler plugin found for the volume!', signal)
    try {
      await recycle(context, pod, (type, message) => events.event(volume, type, 'RecyclerPod', message), signal)
    } catch (error) {
      if (signal.aborted) throw error
      return failVolume(deps, volume, 'VolumeFailedRecycle', `Recycle failed: ${messageOf(error)}`, signal)
    }
    events.event(volume, 'Normal', 'VolumeRecycled', 'Volume recycled')
    await unbind(deps, volume, signal)
  }
}
