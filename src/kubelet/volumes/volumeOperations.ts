/**
 * Mounts and unmounts one volume for one pod (L3): checks, attachment, staging, set-up and expansion, as far as the volume's plugin has them, in upstream's
 * order and with upstream's messages. Retries, events about failures and the list of mounted volumes belong to volumeManager.ts.
 * Upstream: volume/util/operationexecutor/operation_generator.go (v1.36).
 */
import { lstat } from 'node:fs/promises'
import { basename } from 'node:path'
import { messageOf } from '#base/messageOf'
import { listIfExists, makeDirectory } from '#host/files'
import type { FrozenPod } from '../core/containers.ts'
import { podDirectory } from '../core/podDirectory.ts'
import { checkNodeAffinity, extraGroup } from './claims.ts'
import { createExclusive } from './exclusive.ts'
import { expandDuringMount } from './expansion.ts'
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
  /** Does work while this volume is neither mounted nor unmounted for any pod. */
  inTurn<T>(pluginName: string, volumeName: string, work: () => Promise<T>): Promise<T>
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
  const inTurnIfStaged = <T>(plugin: VolumePlugin, name: string, work: () => Promise<T>): Promise<T> =>
    plugin.staging ? inTurn(plugin.name, name, work) : work()

  const isUsedElsewhere = async (plugin: VolumePlugin, name: string, ownUid: string): Promise<boolean> => {
    for (const uid of await listIfExists(host.path(`${config.rootDirectory}/pods`))) {
      if (uid === ownUid) continue
      for (const kind of kinds) {
        const directory = `${pluginDirectory(podDirectory(config.rootDirectory, uid), kind, plugin)}/${name}`
        if (await lstat(host.path(directory)).catch(() => undefined)) return true
      }
    }
    return false
  }

  return {
    inTurn,
    mount: async (plugin, target) => {
      const { pod, spec, block, refresh } = target
      const failed = (step: string) => (error: unknown) =>
        Promise.reject(new Error(`${step} for volume "${spec.name}" : ${messageOf(error)}`, { cause: error }))
      const operation = block ? 'MapVolume' : 'MountVolume'
      if (spec.persistentVolume)
        await checkNodeAffinity(context.client, config.nodeName, spec.persistentVolume).catch(failed('MountVolume.NodeAffinity check failed'))
      const { mapDevice } = plugin
      if (block && !mapDevice) return failed('MapVolume.SetUpDevice failed')(new Error(`volume plugin ${plugin.name} has no block volumes`))
      const base = podDirectory(config.rootDirectory, pod.metadata.uid ?? '')
      const directory = `${pluginDirectory(base, block ? 'volumeDevices' : 'volumes', plugin)}/${spec.name}`
      const path = await metrics.timed(plugin.name, block ? 'map_volume' : 'volume_mount', async () => {
        let request: VolumeRequest = { pod, spec, directory, refresh }
        if (await plugin.attachments?.isAttachable(volumes, spec)) {
          const devicePath = await plugin.attachments?.waitForAttach(volumes, request).catch(failed(`${operation}.WaitForAttach failed`))
          request = { ...request, devicePath }
        }
        return inTurnIfStaged(plugin, spec.name, async () => {
          if (plugin.staging) {
            // unmountAll finds the volume by this directory, also when a later step fails.
            if (!block) await makeDirectory(host.path(directory))
            request = { ...request, stagingPath: plugin.staging.path(volumes, spec) }
            await plugin.staging.mountDevice(volumes, request).catch(failed(block ? 'MapVolume.SetUpDevice failed' : 'MountVolume.MountDevice failed'))
          }
          const [setUp, name] = block && mapDevice ? [mapDevice, 'MapVolume.SetUpDevice'] : [plugin.setUp, 'MountVolume.SetUp']
          const mounted = await setUp(volumes, request).catch(failed(`${name} failed`))
          const expanding = block ? 'MapVolume.MarkVolumeAsMounted failed while expanding volume' : 'MountVolume.Setup failed while expanding volume'
          await expandDuringMount(volumes, plugin, request, mounted).catch(failed(expanding))
          return mounted
        })
      })
      const readOnly = spec.readOnly || plugin.readOnly === true
      const isLocalEphemeral = plugin.isLocalEphemeral?.(spec) ?? false
      return { name: spec.name, plugin: plugin.name, path, block, readOnly, isLocalEphemeral, group: extraGroup(spec.persistentVolume) }
    },
    unmountAll: async (plugin, podUid) => {
      for (const kind of kinds) {
        const parent = pluginDirectory(podDirectory(config.rootDirectory, podUid), kind, plugin)
        for (const name of await listIfExists(host.path(parent))) {
          const directory = `${parent}/${name}`
          await metrics.timed(plugin.name, kind === 'volumes' ? 'volume_unmount' : 'unmap_volume', () =>
            inTurnIfStaged(plugin, name, async () => {
              const spec = (await plugin.reconstruct?.(volumes, directory)) ?? { name: basename(directory), readOnly: false }
              await plugin.tearDown?.(volumes, { spec, directory })
              if (!plugin.staging || (await isUsedElsewhere(plugin, name, podUid))) return
              await plugin.staging.unmountDevice(volumes, spec, plugin.staging.path(volumes, spec))
            }),
          )
        }
      }
    },
  }
}
