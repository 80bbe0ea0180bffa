/**
 * Sets up and tears down the volumes of pods (L3): all volumes of a pod at once, each with its own back-off and with upstream's events, and removes what
 * pods of an earlier kubelet left on disk. It never waits: the pod is synced again while volumes are missing.
 * In order: claims.ts resolves a volume to its PersistentVolume, index.ts finds its plugin (volumePlugin.ts), volumeOperations.ts mounts it, waits.ts decides
 * when a failed volume is tried again. The other files are the plugins, named after their types, and what they share.
 * Upstream: kubelet/volumemanager, kubelet_volumes.go (v1.36).
 */
import { rm } from 'node:fs/promises'
import { claimNameOf } from '#api/helpers/volumes'
import { messageOf } from '#base/messageOf'
import { listIfExists } from '#host/files'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podDirectory } from '../core/podDirectory.ts'
import { podReference } from '../core/podReference.ts'
import type { MeasuredVolume, VolumeMeasures } from '../core/volumeStats.ts'
import { resolveVolume, volumeUse } from './claims.ts'
import { createCsiDrivers } from './csi/drivers.ts'
import { releaseImageVolumes } from './imageVolumes.ts'
import { volumePlugins } from './index.ts'
import { knowsNoSwap, unmountIfMounted } from './podMounts.ts'
import { createTokenManager } from './tokenManager.ts'
import { createUpkeep, type Wanted } from './upkeep.ts'
import { createVolumeMetrics } from './volumeMetrics.ts'
import { createVolumeOperations } from './volumeOperations.ts'
import type { MountedVolume, MountedVolumes, VolumeContext, VolumePlugin, VolumeSpec } from './volumePlugin.ts'
import { untracked } from './volumesInUse.ts'
import { createWaits } from './waits.ts'

export interface VolumeManager {
  /** Sets up what is missing and refreshes what may have changed. @throws VolumesNotReady when something is still missing. */
  setUpPod(pod: FrozenPod): Promise<MountedVolumes>
  /** Tears down all volumes of the pod and removes its directory. */
  tearDownPod(uid: string): Promise<void>
  /** Does work while this volume is neither mounted nor unmounted for any pod: of plugins whose volumes several pods share. */
  inTurn<T>(pluginName: string, volumeName: string, work: () => Promise<T>): Promise<T>
  /** Notes the attached volumes of an earlier kubelet, so that they stay attached while their pods end. To be called before the node's status is reported. */
  restoreInUse(): Promise<void>
  /** The volumes of the pod that are mounted now. */
  mountedVolumes(uid: string): MountedVolumes
  /** Measures the pod's mounted volumes; those without statistics, or that cannot be measured now, are left out. */
  statistics(uid: string, measures: VolumeMeasures): Promise<MeasuredVolume[]>
  /** Tears down volumes of unknown pods, and unstages what could not be unstaged before. It lists the disk before it calls isKnown, so that a pod that starts meanwhile is not an orphan. */
  removeOrphans(isKnown: (podUid: string) => boolean): Promise<void>
}

const unmounted: MountedVolumes = new Map()

/** For runtimes that use no files. */
const noVolumes: VolumeManager = {
  setUpPod: async () => new Map(),
  tearDownPod: async () => {},
  inTurn: (_plugin, _volume, work) => work(),
  restoreInUse: async () => {},
  mountedVolumes: () => unmounted,
  statistics: async () => [],
  removeOrphans: async () => {},
}

/** Memory-backed volumes may reach the disk when the kernel swaps them. */
function warnOfSwap({ machineInfo, config, recorder }: KubeletContext): void {
  if (!machineInfo.swapBytes || knowsNoSwap(machineInfo.kernelVersion)) return
  const what = 'Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.'
  const node = { kind: 'Node', name: config.nodeName, uid: config.nodeName }
  recorder.event(node, 'Warning', 'PossibleMemoryBackedVolumesOnDisk', `The tmpfs noswap option is not supported. ${what}`)
}

/** What volumes share with other parts of the kubelet. */
export type VolumeServices = Pick<VolumeContext, 'csi' | 'inUse'> & Partial<Pick<VolumeContext, 'certificates'>>

const noCertificates = () => Promise.reject(new Error('unimplemented'))

/** @param plugins the volume types of this node, in the order in which they are asked */
export function createVolumeManager(
  context: KubeletContext,
  plugins: readonly VolumePlugin[] = volumePlugins,
  { csi, inUse, certificates = noCertificates }: VolumeServices = { csi: createCsiDrivers(context), inUse: untracked },
): VolumeManager {
  const { host, config, log } = context
  if (!host) return noVolumes
  warnOfSwap(context)
  const volumes: VolumeContext = { context, host, tokens: createTokenManager(context), csi, inUse, certificates }
  const metrics = createVolumeMetrics(context)
  const operations = createVolumeOperations(volumes, metrics)
  const waits = createWaits(context)
  const upkeep = createUpkeep(context, operations, waits)
  const mounted = new Map<string, Map<string, MountedVolume>>()
  /** By uid of the pod, then by volume: the plugins of the volumes that pods need, mounted or not. */
  const needed = new Map<string, Map<string, { readonly plugin: string }>>()
  const pluginFor = (spec: VolumeSpec) => plugins.find((candidate) => candidate.supports(spec))
  const pluginNamed = (name: string) => plugins.find((candidate) => candidate.name === name)

  /** Brings one volume up to date. Returns false while it is not mounted; the reason is recorded. */
  const bring = async (wanted: Wanted): Promise<boolean> => {
    const { pod, volume, use, ready } = wanted
    const uid = pod.metadata.uid ?? ''
    const known = ready.get(volume.name)
    const mountedBy = known && pluginNamed(known.plugin)
    if (mountedBy && !mountedBy.requiresRemount) {
      upkeep.start(wanted, mountedBy, known)
      return true
    }
    const direct = pluginFor({ name: volume.name, volume, readOnly: false })
    const isHeldBack = direct ? !direct.requiresRemount : claimNameOf(pod, volume) !== undefined
    if (isHeldBack && waits.remainingMs(uid, volume.name) > 0) return false
    const block = use.devices.has(volume.name)
    let spec: VolumeSpec
    let plugin: VolumePlugin | undefined
    try {
      spec = await resolveVolume(context.client, pod, volume, use)
      plugin = pluginFor(spec)
      if (!plugin) throw new Error(`failed to get Plugin from volumeSpec for volume "${spec.name}" err=no volume plugin matched`)
      needed.get(uid)?.set(volume.name, { plugin: plugin.name })
    } catch (error) {
      waits.unprocessed(pod, volume.name, messageOf(error))
      return known !== undefined
    }
    try {
      ready.set(volume.name, await operations.mount(plugin, { pod, spec, block, refresh: known !== undefined }))
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
    await upkeep.settled(uid)
    const directory = podDirectory(config.rootDirectory, uid)
    // Subpath mounts keep their volume busy, so they are unmounted first.
    await unmountIfMounted(host, `${directory}/volume-subpaths`)
    await releaseImageVolumes(host, async () => context.runtime.imageMounts?.(), directory)
    for (const plugin of plugins) await operations.unmountAll(plugin, uid)
    // rm must not descend into a mount that is left.
    await unmountIfMounted(host, directory)
    await rm(host.path(directory), { recursive: true, force: true })
    volumes.tokens.forget(uid)
    waits.forget(uid)
    mounted.delete(uid)
    needed.delete(uid)
    inUse.release(uid)
    metrics.volumes(mounted.values(), needed.values())
  }

  return {
    setUpPod: async (pod) => {
      const uid = pod.metadata.uid ?? ''
      const use = volumeUse(pod)
      const wanted = (pod.spec.volumes ?? []).filter(({ name, image }) => !image && (use.mounts.has(name) || use.devices.has(name)))
      if (wanted.length === 0) return new Map()
      const ready = mounted.get(uid) ?? new Map<string, MountedVolume>()
      mounted.set(uid, ready)
      const own = needed.get(uid) ?? new Map<string, { readonly plugin: string }>()
      needed.set(uid, own)
      const before = ready.size + own.size
      const done = await Promise.all(wanted.map((volume) => bring({ pod, volume, use, ready })))
      if (ready.size + own.size !== before) metrics.volumes(mounted.values(), needed.values())
      const missing = wanted.filter((_, index) => !done[index]).map(({ name }) => name)
      if (missing.length > 0) throw waits.notReady(pod, missing)
      return ready
    },
    tearDownPod,
    inTurn: operations.inTurn,
    restoreInUse: () => operations.restoreInUse(plugins),
    mountedVolumes: (uid) => mounted.get(uid) ?? unmounted,
    statistics: async (uid, measures) => {
      const measured = [...(mounted.get(uid) ?? unmounted)].map(async ([name, volume]): Promise<MeasuredVolume[]> => {
        const measuring = pluginNamed(volume.plugin)?.statistics?.(volumes, volume, measures)
        const usage = await measuring?.catch((error: unknown) => {
          log.v(4).info('Failed to calculate volume metrics', { podUid: uid, volumeName: name, error: messageOf(error) })
          return undefined
        })
        return usage ? [{ name, usage, isLocalEphemeral: volume.isLocalEphemeral === true }] : []
      })
      return (await Promise.all(measured)).flat()
    },
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
      await operations.retryUnstaging(plugins)
    },
  }
}
