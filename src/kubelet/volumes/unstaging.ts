/**
 * Unstages volumes that no pod of the node uses any more (L3). A driver may refuse, or not be there: the pods end all the same, the volume stays in use on the node,
 * and the kubelet asks again, also a later kubelet. Upstream: UnmountDevice of kubelet/volumemanager/reconciler, which no pod waits for (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { Exclusive } from './exclusive.ts'
import type { VolumeContext, VolumePlugin, VolumeSpec } from './volumePlugin.ts'

export interface StagedVolume {
  readonly plugin: VolumePlugin
  readonly spec: VolumeSpec
  readonly stagingPath: string
}

export interface Unstaging {
  /** To be called in turn with all work at this path. Never throws. @param ownPod whose own use does not count */
  release(volume: StagedVolume, ownPod?: string): Promise<void>
  /** Tries again what has failed, if its wait is over, and at first what an earlier kubelet has left. */
  retry(plugins: readonly VolumePlugin[]): Promise<void>
}

interface Left {
  readonly volume: StagedVolume
  readonly dueMs: number
  readonly waitMs: number
}

const initialMs = 500
const maxMs = 122_000
/** In the place of a pod's uid. */
const holderOf = (stagingPath: string) => `staged ${stagingPath}`

/** @param isUsed whether a pod of the node but this one has a directory of a volume that is staged there */
export function createUnstaging(
  volumes: VolumeContext,
  exclusive: Exclusive,
  isUsed: (plugin: VolumePlugin, stagingPath: string, ownPod: string) => Promise<boolean>,
): Unstaging {
  const { clock, log } = volumes.context
  const left = new Map<string, Left>()
  let hasLooked = false

  const forget = (stagingPath: string) => {
    if (left.delete(stagingPath)) volumes.inUse.release(holderOf(stagingPath))
  }

  const release = async (volume: StagedVolume, ownPod = ''): Promise<void> => {
    const { plugin, spec, stagingPath } = volume
    try {
      if (!(await isUsed(plugin, stagingPath, ownPod))) await plugin.staging?.unmountDevice(volumes, spec, stagingPath)
      forget(stagingPath)
    } catch (error) {
      const waitMs = Math.min(maxMs, (left.get(stagingPath)?.waitMs ?? initialMs / 2) * 2)
      log.warn('A volume could not be unstaged, trying again', { volume: spec.name, stagingPath, error: messageOf(error) })
      left.set(stagingPath, { volume, waitMs, dueMs: clock.monotonicMs() + waitMs })
      const name = plugin.attachments?.uniqueName(spec)
      // It must stay attached until then.
      if (name !== undefined) volumes.inUse.restore(holderOf(stagingPath), `${plugin.name}/${name}`)
    }
  }

  const findOlderOf = async (plugin: VolumePlugin): Promise<boolean> => {
    try {
      const staged = (await plugin.staging?.staged?.(volumes)) ?? []
      for (const { spec, stagingPath } of staged) if (!left.has(stagingPath)) await exclusive(stagingPath, () => release({ plugin, spec, stagingPath }))
      return true
    } catch (error) {
      log.warn('Volumes of an earlier kubelet could not be found, trying again', { plugin: plugin.name, error: messageOf(error) })
      return false
    }
  }

  const findOlder = async (plugins: readonly VolumePlugin[]): Promise<boolean> => {
    const found: boolean[] = []
    for (const plugin of plugins) found.push(await findOlderOf(plugin))
    return found.every(Boolean)
  }

  return {
    release,
    retry: async (plugins) => {
      if (!hasLooked) hasLooked = await findOlder(plugins)
      for (const [stagingPath, { volume, dueMs }] of [...left]) {
        if (dueMs <= clock.monotonicMs()) await exclusive(stagingPath, () => release(volume))
      }
    },
  }
}
