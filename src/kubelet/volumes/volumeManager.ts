/**
 * Sets up and takes down the volumes of pods (L3), and finds after a restart what earlier pods left below the kubelet's directory.
 * Upstream: kubelet/volumemanager, kubelet_volumes.go (v1.36).
 */
import { rm } from 'node:fs/promises'
import { listIfExists } from '#host/files'
import type { KubeletContext } from '../context.ts'
import type { FrozenPod } from '../pods/containers.ts'
import { podReference } from '../pods/podReference.ts'
import { volumePlugins } from './index.ts'
import { unmountIfMounted } from './tmpfs.ts'
import { createTokenManager } from './tokenManager.ts'
import type { FrozenVolume, VolumeContext, VolumePlugin } from './volumePlugin.ts'

export interface VolumeManager {
  /** Volume name → the node's path of it. Sets up what is missing and refreshes what may have changed. @throws Error naming the volume that failed. */
  setUpPod(pod: FrozenPod): Promise<ReadonlyMap<string, string>>
  /** Takes everything of the pod down and removes its directory. */
  tearDownPod(uid: string): Promise<void>
  /** Uids that have a directory. */
  knownPods(): Promise<string[]>
}

export const podDirectory = (rootDirectory: string, uid: string) => `${rootDirectory}/pods/${uid}`
const escaped = (plugin: string) => plugin.replaceAll('/', '~')

/** For runtimes that use no files. */
const noVolumes: VolumeManager = { setUpPod: async () => new Map(), tearDownPod: async () => {}, knownPods: async () => [] }

export function createVolumeManager(context: KubeletContext): VolumeManager {
  const { host, config } = context
  if (!host) return noVolumes
  const volumes: VolumeContext = { context, host, tokens: createTokenManager(context) }
  const ready = new Map<string, Map<string, string>>()
  const plugins: readonly VolumePlugin[] = volumePlugins

  const setUp = async (pod: FrozenPod, volume: FrozenVolume, known: Map<string, string>): Promise<void> => {
    const plugin = plugins.find((candidate) => candidate.supports(volume))
    if (!plugin) throw new Error(`no volume plugin matched`)
    if (known.has(volume.name) && !plugin.refreshes) return
    const directory = `${podDirectory(config.rootDirectory, pod.metadata.uid ?? '')}/volumes/${escaped(plugin.name)}/${volume.name}`
    known.set(volume.name, await plugin.setUp(volumes, { pod, volume, directory }))
  }

  return {
    setUpPod: async (pod) => {
      const uid = pod.metadata.uid ?? ''
      const known = ready.get(uid) ?? new Map<string, string>()
      ready.set(uid, known)
      for (const volume of pod.spec.volumes ?? []) {
        try {
          await setUp(pod, volume, known)
        } catch (error) {
          const message = `MountVolume.SetUp failed for volume "${volume.name}" : ${error instanceof Error ? error.message : String(error)}`
          context.recorder.event(podReference(pod), 'Warning', 'FailedMount', message)
          throw new Error(message, { cause: error })
        }
      }
      return known
    },
    tearDownPod: async (uid) => {
      const directory = podDirectory(config.rootDirectory, uid)
      for (const plugin of plugins) {
        const parent = `${directory}/volumes/${escaped(plugin.name)}`
        for (const name of await listIfExists(host.path(parent))) await plugin.tearDown?.(volumes, `${parent}/${name}`)
      }
      // Whatever is still mounted there must never be deleted through.
      await unmountIfMounted(host, directory)
      await rm(host.path(directory), { recursive: true, force: true })
      volumes.tokens.forget(uid)
      ready.delete(uid)
    },
    knownPods: () => listIfExists(host.path(`${config.rootDirectory}/pods`)),
  }
}
