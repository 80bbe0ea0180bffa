/**
 * Sets up and takes down the volumes of pods (L3): all volumes of a pod at once, each with a back-off of its own, upstream's events, and
 * after a restart what earlier pods left below the kubelet's directory. It never waits: a pod that misses a volume is looked at again.
 * Upstream: kubelet/volumemanager, volume/util/operationexecutor, kubelet_volumes.go (v1.36).
 */
import { rm } from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import { listIfExists } from '#host/files'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podDirectory } from '../core/podDirectory.ts'
import { podReference } from '../core/podReference.ts'
import { checkNodeAffinity, extraGroup, resolveVolume, type VolumeUse, volumeUse } from './claims.ts'
import { createExclusive } from './exclusive.ts'
import { releaseImageVolumes } from './imageVolumes.ts'
import { volumePlugins } from './index.ts'
import { knowsNoSwap, unmountIfMounted } from './podMounts.ts'
import { createTokenManager } from './tokenManager.ts'
import { createVolumeMetrics } from './volumeMetrics.ts'
import type { FrozenVolume, MountedVolume, MountedVolumes, VolumeContext, VolumePlugin, VolumeSpec } from './volumePlugin.ts'
import { createWaits } from './waits.ts'

export interface VolumeManager {
  /** Sets up what is missing and refreshes what may have changed. @throws VolumesNotReady when something is still missing. */
  setUpPod(pod: FrozenPod): Promise<MountedVolumes>
  /** Takes everything of the pod down and removes its directory. */
  tearDownPod(uid: string): Promise<void>
  /** Takes down what pods left that nobody knows. Asked after the look at the disk: a pod that comes meanwhile is no orphan. */
  removeOrphans(isKnown: (podUid: string) => boolean): Promise<void>
}

const escaped = (plugin: string) => plugin.replace('/', '~')

/** For runtimes that use no files. */
const noVolumes: VolumeManager = {
  setUpPod: async () => new Map(),
  tearDownPod: async () => {},
  removeOrphans: async () => {},
}

const plugins: readonly VolumePlugin[] = volumePlugins

/** @throws Error with upstream's text when this node knows no such type. */
function pluginFor(spec: VolumeSpec): VolumePlugin {
  const found = plugins.find((candidate) => candidate.supports(spec))
  if (!found) throw new Error(`failed to get Plugin from volumeSpec for volume "${spec.name}" err=no volume plugin matched`)
  return found
}

/** Secrets in memory are on a disk when memory is. */
function warnOfSwap({ machineInfo, config, recorder }: KubeletContext): void {
  if (!machineInfo.swapBytes || knowsNoSwap(machineInfo.kernelVersion)) return
  const what = 'Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.'
  const node = { kind: 'Node', name: config.nodeName, uid: config.nodeName }
  recorder.event(node, 'Warning', 'PossibleMemoryBackedVolumesOnDisk', `The tmpfs noswap option is not supported. ${what}`)
}

export function createVolumeManager(context: KubeletContext): VolumeManager {
  const { host, config, log } = context
  if (!host) return noVolumes
  warnOfSwap(context)
  const volumes: VolumeContext = { context, host, tokens: createTokenManager(context), exclusive: createExclusive() }
  const metrics = createVolumeMetrics(context)
  const waits = createWaits(context)
  const mounted = new Map<string, Map<string, MountedVolume>>()

  /** One attempt. @throws Error with the message of its event. */
  const mount = async (pod: FrozenPod, spec: VolumeSpec, plugin: VolumePlugin, block: boolean, known: MountedVolume | undefined): Promise<MountedVolume> => {
    const failed = (what: string, error: unknown) => new Error(`${what} failed for volume "${spec.name}" : ${messageOf(error)}`, { cause: error })
    if (known && !plugin.refreshes) return known
    if (spec.persistentVolume) {
      const check = checkNodeAffinity(context.client, config.nodeName, spec.persistentVolume)
      await check.catch((error: unknown) => Promise.reject(failed('MountVolume.NodeAffinity check', error)))
    }
    const base = podDirectory(config.rootDirectory, pod.metadata.uid ?? '')
    const directory = `${base}/${block ? 'volumeDevices' : 'volumes'}/${escaped(plugin.name)}/${spec.name}`
    const request = { pod, spec, directory, refresh: known !== undefined }
    const operation = block ? 'MapVolume.SetUpDevice' : 'MountVolume.SetUp'
    if (block && !plugin.mapDevice) throw failed(operation, new Error(`volume plugin ${plugin.name} has no block volumes`))
    const setUp = () => (block && plugin.mapDevice ? plugin.mapDevice(volumes, request) : plugin.setUp(volumes, request))
    const path = await metrics
      .timed(plugin.name, block ? 'map_volume' : 'volume_mount', setUp)
      .catch((error: unknown) => Promise.reject(failed(operation, error)))
    return { name: spec.name, plugin: plugin.name, path, block, readOnly: spec.readOnly || plugin.readOnly === true, group: extraGroup(spec.persistentVolume) }
  }

  /** Brings one volume up to date; false: it is not there yet, and why has been told. */
  const bring = async (pod: FrozenPod, volume: FrozenVolume, use: VolumeUse, ready: Map<string, MountedVolume>): Promise<boolean> => {
    const uid = pod.metadata.uid ?? ''
    const block = use.devices.has(volume.name)
    const known = ready.get(volume.name)
    // What a claim leads to does not change while the pod uses it.
    if (known && !volume.configMap && !volume.secret && !volume.downwardAPI && !volume.projected) return true
    // Objects of the API wake the pod when they change, and cost little: no need to hold them back.
    const held = volume.persistentVolumeClaim || volume.ephemeral || volume.hostPath || volume.emptyDir
    if (held && waits.remainingMs(uid, volume.name) > 0) return false
    let spec: VolumeSpec
    let plugin: VolumePlugin
    try {
      spec = await resolveVolume(context.client, pod, volume, use)
      plugin = pluginFor(spec)
    } catch (error) {
      waits.unprocessed(pod, volume.name, messageOf(error))
      return known !== undefined
    }
    try {
      ready.set(volume.name, await mount(pod, spec, plugin, block, known))
      waits.succeeded(uid, volume.name)
      return true
    } catch (error) {
      if (waits.failed(uid, volume.name)) {
        context.recorder.event(podReference(pod), 'Warning', block ? 'FailedMapVolume' : 'FailedMount', messageOf(error))
      }
      // A running pod keeps the content that it has.
      return known !== undefined
    }
  }

  const tearDownPod = async (uid: string): Promise<void> => {
    const directory = podDirectory(config.rootDirectory, uid)
    // What containers had of a volume goes before the volume.
    await unmountIfMounted(host, `${directory}/volume-subpaths`)
    await releaseImageVolumes(host, async () => context.runtime.imageMounts?.(), directory)
    for (const plugin of plugins) {
      for (const kind of ['volumes', 'volumeDevices']) {
        const parent = `${directory}/${kind}/${escaped(plugin.name)}`
        for (const name of await listIfExists(host.path(parent))) {
          await metrics.timed(plugin.name, kind === 'volumes' ? 'volume_unmount' : 'unmap_volume', async () => plugin.tearDown?.(volumes, `${parent}/${name}`))
        }
      }
    }
    // Whatever is still mounted there must never be deleted through.
    await unmountIfMounted(host, directory)
    await rm(host.path(directory), { recursive: true, force: true })
    volumes.tokens.forget(uid)
    waits.forget(uid)
    mounted.delete(uid)
    metrics.mounted(mounted.values())
  }

  return {
    setUpPod: async (pod) => {
      const uid = pod.metadata.uid ?? ''
      const use = volumeUse(pod)
      const wanted = (pod.spec.volumes ?? []).filter(({ name, image }) => !image && (use.mounts.has(name) || use.devices.has(name)))
      if (wanted.length === 0) return new Map()
      const ready = mounted.get(uid) ?? new Map<string, MountedVolume>()
      mounted.set(uid, ready)
      const before = ready.size
      const done = await Promise.all(wanted.map((volume) => bring(pod, volume, use, ready)))
      if (ready.size !== before) metrics.mounted(mounted.values())
      const missing = wanted.filter((_, index) => !done[index]).map(({ name }) => name)
      if (missing.length > 0) throw waits.notReady(pod, missing)
      return ready
    },
    tearDownPod,
    removeOrphans: async (isKnown) => {
      const orphans = (await listIfExists(host.path(`${config.rootDirectory}/pods`))).filter((uid) => !isKnown(uid))
      let errors = 0
      for (const uid of orphans) {
        await tearDownPod(uid).catch((error: unknown) => {
          errors++
          log.warn('Failed to remove orphaned pod dir', { podUid: uid, error: messageOf(error) })
        })
      }
      metrics.orphans(orphans.length - errors, errors)
    },
  }
}
