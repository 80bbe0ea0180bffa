/**
 * Measures the node for the eviction manager (L3): a few small files and statfs every round; the disk usage of pods only on request.
 * Upstream: kubelet/eviction/helpers.go makeSignalObservations, kubelet/server/stats (v1.36).
 */
import { readFile, stat } from 'node:fs/promises'
import { least } from '#base/extremes'
import { directoryUsage } from '#host/directoryUsage'
import { podCgroupPath, qosCgroupPath } from '../core/cgroupResources.ts'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'
import { podDirectory, podLogDirectory } from '../core/podDirectory.ts'
import { labelKeys } from '../core/runtimeLabels.ts'
import { kubepodsLimits } from '../resources/cgroupTree.ts'
import type { VolumeManager } from '../volumes/volumeManager.ts'
import type { MountedVolumes } from '../volumes/volumePlugin.ts'
import type { ContainerUsage, DiskUsage, PodUsage } from './podUsage.ts'
import type { Observation, Observations } from './thresholds.ts'

const nothing: DiskUsage = { bytes: 0, inodes: 0 }

/** The directory of images, as a path of the node; undefined while the runtime does not report it. */
async function imagePath({ runtime }: KubeletContext): Promise<string | undefined> {
  return (await runtime.imageFilesystem().catch(() => undefined))?.fsId?.mountpoint
}

/** Whether images and containers live on another file system than the kubelet's. @throws Error while the runtime does not report it */
export async function hasDedicatedImageFs(context: KubeletContext, host: KubeletHost): Promise<boolean> {
  const path = await imagePath(context)
  if (path === undefined) throw new Error('the runtime does not say where its images are')
  const [images, node] = await Promise.all([stat(host.path(path)), stat(host.path(context.config.rootDirectory))])
  return images.dev !== node.dev
}

export async function observe(context: KubeletContext, host: KubeletHost): Promise<Observations> {
  const { config } = context
  const images = await imagePath(context)
  const [nodefs, imagefs, memory, pids, pods] = await Promise.all([
    filesystem(host, config.rootDirectory),
    images === undefined ? undefined : filesystem(host, images),
    nodeMemory(),
    processes(),
    host.cgroups.stats(qosCgroupPath(config.cgroupRoot, 'Guaranteed')).catch(() => undefined),
  ])
  const podsLimit = kubepodsLimits(context.machineInfo, config).memoryLimitBytes
  return {
    'memory.available': memory,
    ...(pods && podsLimit !== undefined
      ? { 'allocatableMemory.available': { available: Math.max(0, podsLimit - pods.memoryWorkingSetBytes), capacity: podsLimit } }
      : {}),
    ...(nodefs ? { 'nodefs.available': nodefs.space, 'nodefs.inodesFree': nodefs.inodes } : {}),
    ...(imagefs
      ? {
          'imagefs.available': imagefs.space,
          'imagefs.inodesFree': imagefs.inodes,
          'containerfs.available': imagefs.space,
          'containerfs.inodesFree': imagefs.inodes,
        }
      : {}),
    ...(pids ? { 'pid.available': pids } : {}),
  }
}

async function filesystem(host: KubeletHost, path: string): Promise<{ space: Observation; inodes: Observation } | undefined> {
  const stats = await host.filesystem(path).catch(() => undefined)
  if (!stats) return undefined
  return {
    space: { available: stats.availableBytes, capacity: stats.capacityBytes },
    inodes: { available: stats.inodesFree, capacity: stats.inodes },
  }
}

async function nodeMemory(): Promise<Observation> {
  return memoryObservation(await readFile('/proc/meminfo', 'utf8'))
}

/** All memory less the working set, which is what is used without the inactive file cache: upstream counts active cache as used, unlike the kernel. */
export function memoryObservation(meminfo: string): Observation {
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(meminfo)?.[1] ?? 0) * 1024
  return { available: bytes('MemFree') + bytes('Inactive\\(file\\)'), capacity: bytes('MemTotal') }
}

/** How many processes there may still be: the smaller of the kernel's two limits less those that run. */
export async function processes(): Promise<Observation | undefined> {
  const [maxPid, maxThreads, load] = await Promise.all(
    ['/proc/sys/kernel/pid_max', '/proc/sys/kernel/threads-max', '/proc/loadavg'].map((file) => readFile(file, 'utf8').catch(() => '')),
  )
  const running = Number(/\/(\d+) /.exec(load ?? '')?.[1])
  const capacity = least([maxPid, maxThreads].filter((text) => text !== '').map(Number))
  return Number.isFinite(running) && Number.isFinite(capacity) ? { available: capacity - running, capacity } : undefined
}

export type MountedVolumesReader = Pick<VolumeManager, 'mountedVolumes'>

/** What to measure in addition to memory. */
export interface UsageNeeds {
  readonly disk: boolean
  readonly processes: boolean
}

/** What those pods use. Pods of which the runtime knows nothing are left out. */
export async function podUsages(
  context: KubeletContext,
  host: KubeletHost,
  volumes: MountedVolumesReader,
  pods: readonly FrozenPod[],
  needs: UsageNeeds,
): Promise<Map<string, PodUsage>> {
  const stats = await context.runtime.listContainerStats()
  const usages = new Map<string, PodUsage>()
  for (const pod of pods) {
    const uid = pod.metadata.uid ?? ''
    const own = stats.filter(({ attributes }) => attributes.labels[labelKeys.podUid] === uid)
    if (own.length === 0) continue
    const containers: ContainerUsage[] = []
    for (const { attributes, memory, writableLayer } of own) {
      const { name } = attributes.metadata
      const rootfs = { bytes: writableLayer?.usedBytes?.value ?? 0, inodes: writableLayer?.inodesUsed?.value ?? 0 }
      const logs = needs.disk ? await directoryUsage(host.path(`${podLogDirectory(context.config, pod)}/${name}`)) : nothing
      containers.push({ name, memoryBytes: memory?.workingSetBytes?.value ?? 0, rootfs, logs })
    }
    const processCount = needs.processes ? ((await host.cgroups.stats(podCgroupPath(context.config.cgroupRoot, pod)))?.processes ?? 0) : 0
    const volumeUsage = needs.disk ? await volumeUsages(host, volumes.mountedVolumes(uid)) : new Map<string, DiskUsage>()
    const managedFiles = needs.disk ? await managedUsage(context, host, pod) : undefined
    usages.set(uid, { containers, processes: processCount, volumes: volumeUsage, managedFiles })
  }
  return usages
}

/** Unlike upstream, termination logs count: a container may write as much to its own as it likes. */
async function managedUsage({ config }: KubeletContext, host: KubeletHost, pod: FrozenPod): Promise<DiskUsage> {
  const own = podDirectory(config.rootDirectory, pod.metadata.uid ?? '')
  const [hosts, logs] = await Promise.all([directoryUsage(host.path(`${own}/etc-hosts`)), directoryUsage(host.path(`${own}/containers`))])
  return { bytes: hosts.bytes + logs.bytes, inodes: hosts.inodes + logs.inodes }
}

/** The volumes that count as ephemeral storage. */
async function volumeUsages(host: KubeletHost, volumes: MountedVolumes): Promise<Map<string, DiskUsage>> {
  const usages = new Map<string, DiskUsage>()
  for (const [name, { path, isLocalEphemeral }] of volumes) if (isLocalEphemeral) usages.set(name, await directoryUsage(host.path(path)))
  return usages
}
