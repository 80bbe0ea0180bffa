/**
 * Mounts and unmounts one volume for one pod (L3): checks, attachment, staging, set-up and expansion, as far as the volume's plugin has them, in upstream's
 * order and with upstream's messages. Retries, events about failures and the list of mounted volumes belong to volumeManager.ts.
 * Upstream: volume/util/operationexecutor/operation_generator.go (v1.36).
 */
import { rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { messageOf } from '#base/messageOf'
import { listIfExists, makeDirectory } from '#host/files'
import type { FrozenPod } from '../core/containers.ts'
import { podDirectory } from '../core/podDirectory.ts'
import { checkNodeAffinity, extraGroup } from './claims.ts'
import { createExclusive } from './exclusive.ts'
import { expandVolume, isToGrow } from './expansion.ts'
import { unmountIfMounted } from './podMounts.ts'
import { createUnstaging } from './unstaging.ts'
import type { VolumeMetrics } from './volumeMetrics.ts'
import type { MountedVolume, VolumeContext, VolumePlugin, VolumeRequest, VolumeSpec } from './volumePlugin.ts'

export interface MountTarget {
  readonly pod: FrozenPod
  readonly spec: VolumeSpec
  /** The pod uses the volume as a device. */
  readonly block: boolean
  /** This kubelet has mounted the volume before. */
  readonly refresh: boolean
}

export interface VolumeOperations {
  /** One attempt. @throws Error with the message of its event */
  mount(plugin: VolumePlugin, target: MountTarget): Promise<MountedVolume>
  /** Grows a mounted volume, if its claim says less than its PersistentVolume has. @throws Error with the message of its event */
  grow(plugin: VolumePlugin, target: MountTarget, path: string): Promise<void>
  /** Does work while this volume is neither mounted nor unmounted for any pod. */
  inTurn<T>(pluginName: string, volumeName: string, work: () => Promise<T>): Promise<T>
  /** Notes the attachable volumes that pods of an earlier kubelet have. */
  restoreInUse(plugins: readonly VolumePlugin[]): Promise<void>
  /** Unstages what could not be unstaged when its pods ended. */
  retryUnstaging(plugins: readonly VolumePlugin[]): Promise<void>
  /** Unmounts all volumes of the plugin below the pod's directory. */
  unmountAll(plugin: VolumePlugin, podUid: string): Promise<void>
}

type Kind = 'volumes' | 'volumeDevices'
const kinds: readonly Kind[] = ['volumes', 'volumeDevices']

/** The pod's directory for all volumes of a type. */
function pluginDirectory(podDirectory: string, kind: Kind, plugin: VolumePlugin): string {
  return `${podDirectory}/${kind}/${plugin.name.replace('/', '~')}`
}

export function createVolumeOperations(volumes: VolumeContext, metrics: VolumeMetrics): VolumeOperations {
  const { host, context } = volumes
  const { config } = context
  const exclusive = createExclusive()
  const inTurn = <T>(pluginName: string, volumeName: string, work: () => Promise<T>): Promise<T> => exclusive(`${pluginName}/${volumeName}`, work)
  /** Staging serves all pods of the node, so that operations on such a volume must not overlap. */
  const inTurnIfStaged = <T>(plugin: VolumePlugin, name: string, stagingPath: string | undefined, work: () => Promise<T>): Promise<T> =>
    stagingPath === undefined ? work() : inTurn(plugin.name, name, () => exclusive(stagingPath, work))

  const reconstruct = async (plugin: VolumePlugin, directory: string): Promise<VolumeSpec> =>
    (await plugin.reconstruct?.(volumes, directory)) ?? { name: basename(directory), readOnly: false }

  /** Two PersistentVolumes may be one volume of a driver: what counts is where it is staged. */
  const isUsed = async (plugin: VolumePlugin, stagingPath: string, ownUid: string): Promise<boolean> => {
    for (const uid of await listIfExists(host.path(`${config.rootDirectory}/pods`))) {
      if (uid === ownUid) continue
      for (const directory of await directoriesOf(plugin, uid))
        if (plugin.staging?.path(volumes, await reconstruct(plugin, directory)) === stagingPath) return true
    }
    return false
  }

  /** The directories of the pod's volumes of this plugin. */
  const directoriesOf = async (plugin: VolumePlugin, podUid: string): Promise<string[]> => {
    const parents = kinds.map((kind) => pluginDirectory(podDirectory(config.rootDirectory, podUid), kind, plugin))
    const listed = parents.map(async (parent) => (await listIfExists(host.path(parent))).map((name) => `${parent}/${name}`))
    return (await Promise.all(listed)).flat()
  }
  const directoryOf = (plugin: VolumePlugin, { pod, spec, block }: MountTarget) => {
    const base = podDirectory(config.rootDirectory, pod.metadata.uid ?? '')
    return `${pluginDirectory(base, block ? 'volumeDevices' : 'volumes', plugin)}/${spec.name}`
  }

  const unstaging = createUnstaging(volumes, exclusive, isUsed)

  return {
    inTurn,
    retryUnstaging: unstaging.retry,
    grow: async (plugin, target, path) => {
      const { pod, spec, refresh } = target
      if (!isToGrow(plugin, spec)) return
      const stagingPath = plugin.staging?.path(volumes, spec)
      const request = { pod, spec, refresh, directory: directoryOf(plugin, target), stagingPath }
      await inTurnIfStaged(plugin, spec.name, stagingPath, () => expandVolume(volumes, plugin, request, path)).catch((error: unknown) => {
        throw new Error(`NodeExpandVolume.NodeExpandVolume failed for volume "${spec.name}" : ${messageOf(error)}`, { cause: error })
      })
    },
    mount: async (plugin, target) => {
      const { pod, spec, block, refresh } = target
      const failed = (step: string) => (error: unknown) =>
        Promise.reject(new Error(`${step} for volume "${spec.name}" : ${messageOf(error)}`, { cause: error }))
      const operation = block ? 'MapVolume' : 'MountVolume'
      if (spec.persistentVolume)
        await checkNodeAffinity(context.client, config.nodeName, spec.persistentVolume).catch(failed('MountVolume.NodeAffinity check failed'))
      const { mapDevice } = plugin
      if (block && !mapDevice) return failed('MapVolume.SetUpDevice failed')(new Error(`volume plugin ${plugin.name} has no block volumes`))
      const directory = directoryOf(plugin, target)
      const path = await metrics.timed(plugin.name, block ? 'map_volume' : 'volume_mount', async () => {
        let request: VolumeRequest = { pod, spec, directory, refresh }
        const { attachments } = plugin
        if (attachments && (await attachments.isAttachable(volumes, spec))) {
          const name = attachments.uniqueName(spec)
          if (name !== undefined) await volumes.inUse.use(pod.metadata.uid ?? '', `${plugin.name}/${name}`)
          const devicePath = await attachments.waitForAttach(volumes, request).catch(failed(`${operation}.WaitForAttach failed`))
          request = { ...request, devicePath }
        }
        const stagingPath = plugin.staging?.path(volumes, spec)
        return inTurnIfStaged(plugin, spec.name, stagingPath, async () => {
          if (plugin.staging && stagingPath !== undefined) {
            // unmountAll finds the volume by this directory, also when a later step fails.
            if (!block) await makeDirectory(host.path(directory))
            request = { ...request, stagingPath }
            await plugin.staging.mountDevice(volumes, request).catch(failed(block ? 'MapVolume.SetUpDevice failed' : 'MountVolume.MountDevice failed'))
          }
          const [setUp, name] = block && mapDevice ? [mapDevice, 'MapVolume.MapPodDevice'] : [plugin.setUp, 'MountVolume.SetUp']
          const mounted = await setUp(volumes, request).catch(failed(`${name} failed`))
          const expanding = block ? 'MapVolume.MarkVolumeAsMounted failed while expanding volume' : 'MountVolume.Setup failed while expanding volume'
          await expandVolume(volumes, plugin, request, mounted).catch(failed(expanding))
          return mounted
        })
      })
      const isRemounted = await plugin.isRemounted?.(volumes, spec)
      const readOnly = spec.readOnly || plugin.readOnly === true
      const isLocalEphemeral = plugin.isLocalEphemeral?.(spec) ?? false
      return { name: spec.name, plugin: plugin.name, path, block, isRemounted, readOnly, isLocalEphemeral, group: extraGroup(spec.persistentVolume) }
    },
    restoreInUse: async (plugins) => {
      for (const podUid of await listIfExists(host.path(`${config.rootDirectory}/pods`))) {
        for (const plugin of plugins.filter(({ attachments }) => attachments)) {
          for (const directory of await directoriesOf(plugin, podUid)) {
            const spec = await plugin.reconstruct?.(volumes, directory).catch(() => undefined)
            const name = spec && plugin.attachments?.uniqueName(spec)
            if (name !== undefined) volumes.inUse.restore(podUid, `${plugin.name}/${name}`)
          }
        }
      }
    },
    unmountAll: async (plugin, podUid) => {
      for (const directory of await directoriesOf(plugin, podUid)) {
        const name = basename(directory)
        const operation = basename(dirname(dirname(directory))) === 'volumes' ? 'volume_unmount' : 'unmap_volume'
        await metrics.timed(plugin.name, operation, async () => {
          const spec = await reconstruct(plugin, directory)
          const stagingPath = plugin.staging?.path(volumes, spec)
          await inTurnIfStaged(plugin, name, stagingPath, async () => {
            await plugin.tearDown?.(volumes, { spec, directory })
            if (stagingPath === undefined) return
            await unstaging.release({ plugin, spec, stagingPath }, podUid)
            // Another pod of the volume that ends at the same time would take this directory for a user of the volume.
            await unmountIfMounted(host, directory)
            await rm(host.path(directory), { recursive: true, force: true })
          })
        })
      }
    },
  }
}
