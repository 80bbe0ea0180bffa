/**
 * /stats/summary (L3): the Summary of the stats API v1alpha1, of node, pods and containers: CPU, memory, swap, processes, network, volumes and
 * ephemeral storage. Upstream: kubelet/apis/stats/v1alpha1/types.go, kubelet/server/stats/summary.go, stats/cri_stats_provider.go (v1.36).
 */
import { uptime } from 'node:os'
import { claimNameOf } from '#api/helpers/volumes'
import { formatTime } from '#base/time'
import type { InterfaceUsage, Stall } from '#host/cgroupUsage'
import type { DirectoryUsage } from '#host/directoryUsage'
import type { FrozenPod } from '../../core/containers.ts'
import type { KubeletContext } from '../../core/context.ts'
import type { FilesystemStats } from '../../core/host.ts'
import type { KubeletView } from '../../core/kubeletView.ts'
import { podDirectory } from '../../core/podDirectory.ts'
import { processes } from '../../eviction/observe.ts'
import type { Observation } from '../../eviction/thresholds.ts'
import type { DiskUsage } from './diskUsage.ts'
import type { ContainerUsage, GroupUsage, NodeUsage, PodUsage } from './usage.ts'
import { createVolumeMeasures } from './volumeMeasures.ts'
import type { VolumeStats } from './volumeMetrics.ts'

export interface SummaryDeps {
  readonly view: KubeletView
  readonly usage: NodeUsage
  /** Absent on simulated nodes. */
  readonly disk?: DiskUsage | undefined
  readonly onlyCpuAndMemory: boolean
  /** What containers wrote into their images' filesystems, by the runtime's id. */
  readonly writableLayers: ReadonlyMap<string, DirectoryUsage>
}

export async function summaryOf(deps: SummaryDeps): Promise<object> {
  const { view, usage, onlyCpuAndMemory } = deps
  const context = view.context()
  const { node } = usage
  const nodeFs = onlyCpuAndMemory ? undefined : await context?.host?.filesystem(view.config.rootDirectory).catch(() => undefined)
  const runtimeFs = nodeFs && context ? await runtimeFilesystem(context, formatTime(node.atMs)) : undefined
  const time = formatTime(node.atMs)
  const [pods] = usage.groups
  const pids = context?.host && !onlyCpuAndMemory ? await processes() : undefined
  const bootedMs = context?.host ? node.atMs - Math.floor(uptime() * 1000) : undefined
  return {
    node: {
      nodeName: view.config.nodeName,
      ...(bootedMs === undefined ? {} : { startTime: formatTime(bootedMs) }),
      cpu: cpuOf(node),
      memory: { ...memoryOf(node), availableBytes: Math.max(0, (context?.machineInfo.memoryBytes ?? 0) - node.memory.workingSetBytes) },
      ...(onlyCpuAndMemory ? {} : { network: networkOf(time, usage.network), swap: swapOf(node), ...(pids ? { rlimit: rlimitOf(time, pids) } : {}) }),
      ...(pods ? { systemContainers: [{ name: 'pods', startTime: formatTime(bootedMs ?? pods.atMs), cpu: cpuOf(pods), memory: memoryOf(pods) }] } : {}),
      ...(nodeFs ? { fs: filesystemOf(time, nodeFs) } : {}),
      ...(runtimeFs ? { runtime: { imageFs: runtimeFs, containerFs: runtimeFs } } : {}),
    },
    pods: await Promise.all(usage.pods.map((pod) => podOf(deps, pod, nodeFs))),
  }
}

/** The file system of images and writable layers, with the runtime's usage. Undefined while the runtime does not report it. */
async function runtimeFilesystem({ runtime, host }: KubeletContext, time: string) {
  const own = await runtime.imageFilesystem().catch(() => undefined)
  const path = own?.fsId?.mountpoint
  const room = path === undefined ? undefined : await host?.filesystem(path).catch(() => undefined)
  return own && room ? sharedOf(time, { bytes: own.usedBytes?.value ?? 0, inodes: own.inodesUsed?.value ?? 0 }, room) : undefined
}

function cpuOf(group: GroupUsage) {
  return { time: formatTime(group.atMs), usageNanoCores: group.nanoCores ?? 0, usageCoreNanoSeconds: group.cpuNs, ...pressureOf(group, 'cpu') }
}

function memoryOf(group: GroupUsage) {
  const { usageBytes, workingSetBytes, rssBytes, pageFaults, majorPageFaults, limitBytes } = group.memory
  return {
    time: formatTime(group.atMs),
    ...(limitBytes > 0 ? { availableBytes: Math.max(0, limitBytes - workingSetBytes) } : {}),
    usageBytes,
    workingSetBytes,
    rssBytes,
    pageFaults,
    majorPageFaults,
    ...pressureOf(group, 'memory'),
  }
}

function pressureOf({ pressure }: GroupUsage, resource: 'cpu' | 'memory' | 'io') {
  if (!pressure) return {}
  const data = ({ totalUs, ...averages }: Stall) => ({ total: totalUs * 1000, ...averages })
  return { psi: { full: data(pressure[resource].full), some: data(pressure[resource].some) } }
}

function swapOf(group: GroupUsage) {
  return { time: formatTime(group.atMs), swapUsageBytes: group.memory.swapBytes, swapAvailableBytes: 0 }
}

/** The process limits of the machine; its cgroups have other limits. */
function rlimitOf(time: string, { available, capacity }: Observation) {
  return { time, maxpid: capacity, curproc: capacity - available }
}

function networkOf(time: string, interfaces: readonly InterfaceUsage[]) {
  const all = interfaces.map((one) => ({
    name: one.name,
    rxBytes: one.receivedBytes,
    rxErrors: one.receiveErrors,
    txBytes: one.sentBytes,
    txErrors: one.sendErrors,
  }))
  const first = all.find(({ name }) => name === 'eth0') ?? all[0]
  return { time, ...(first ?? { name: '' }), interfaces: all }
}

function filesystemOf(time: string, { availableBytes, capacityBytes, inodes, inodesFree }: FilesystemStats) {
  return { time, availableBytes, capacityBytes, usedBytes: capacityBytes - availableBytes, inodesFree, inodes, inodesUsed: inodes - inodesFree }
}

/** The usage of files on the node's filesystem. */
function sharedOf(time: string, used: DirectoryUsage, nodeFs: FilesystemStats | undefined) {
  const room = nodeFs
    ? { availableBytes: nodeFs.availableBytes, capacityBytes: nodeFs.capacityBytes, inodesFree: nodeFs.inodesFree, inodes: nodeFs.inodes }
    : {}
  return { time, ...room, usedBytes: used.bytes, inodesUsed: used.inodes }
}

async function podOf(deps: SummaryDeps, pod: PodUsage, nodeFs: FilesystemStats | undefined): Promise<object> {
  const { view, onlyCpuAndMemory } = deps
  const { metadata } = pod.pod
  const time = formatTime(pod.group.atMs)
  const status = view.podStatus(pod.uid)
  const basis = {
    podRef: { name: metadata.name, namespace: metadata.namespace, uid: pod.uid },
    startTime: status?.startTime ?? metadata.creationTimestamp,
    cpu: cpuOf(pod.group),
    memory: memoryOf(pod.group),
  }
  if (onlyCpuAndMemory) return { ...basis, containers: pod.containers.map(containerOf) }
  const logs = await Promise.all(pod.containers.map((container) => logUsage(deps, pod, container)))
  const layers = pod.containers.map(({ name }) => deps.writableLayers.get(name) ?? { bytes: 0, inodes: 0 })
  const volumes = await volumesOf(deps, pod.pod, pod.group.atMs)
  const managed = await managedFiles(deps, pod)
  const scratch = volumes.filter(({ isLocalEphemeral }) => isLocalEphemeral).map(({ stats }) => ({ bytes: stats.usedBytes, inodes: stats.inodesUsed }))
  const local = [...logs, ...layers, ...managed, ...scratch]
  const ephemeral = local.reduce((total, { bytes, inodes }) => ({ bytes: total.bytes + bytes, inodes: total.inodes + inodes }), { bytes: 0, inodes: 0 })
  return {
    ...basis,
    containers: pod.containers.map((container, index) => ({
      ...containerOf(container),
      rootfs: sharedOf(time, layers[index] ?? ephemeral, nodeFs),
      logs: sharedOf(time, logs[index] ?? ephemeral, nodeFs),
      swap: swapOf(container),
    })),
    ...(pod.network ? { network: networkOf(time, pod.network) } : {}),
    ...(volumes.length > 0 ? { volume: volumes.map(({ stats }) => stats) } : {}),
    'ephemeral-storage': sharedOf(time, ephemeral, nodeFs),
    process_stats: { process_count: pod.group.processes },
    swap: swapOf(pod.group),
  }
}

function containerOf(container: ContainerUsage) {
  return {
    name: container.container,
    startTime: formatTime(container.startedAtMs ?? container.atMs),
    cpu: cpuOf(container),
    memory: memoryOf(container),
  }
}

/** The usage of all log files of a container, including rotated ones. */
export async function logUsage(
  { view, disk }: Pick<SummaryDeps, 'view' | 'disk'>,
  { pod: { metadata }, uid }: PodUsage,
  { container }: ContainerUsage,
): Promise<DirectoryUsage> {
  const directory = `${view.config.podLogsDirectory}/${metadata.namespace}_${metadata.name}_${uid}/${container}`
  return (await disk?.directory(directory)) ?? { bytes: 0, inodes: 0 }
}

/** The hosts file and termination logs, which containers may write. */
async function managedFiles({ view, disk }: Pick<SummaryDeps, 'view' | 'disk'>, { uid }: PodUsage): Promise<DirectoryUsage[]> {
  const own = podDirectory(view.config.rootDirectory, uid)
  return disk ? Promise.all([disk.directory(`${own}/etc-hosts`), disk.directory(`${own}/containers`)]) : []
}

interface PodVolume {
  readonly stats: VolumeStats
  readonly isLocalEphemeral: boolean
}

/** The mounted volumes of a pod, with the claims that they belong to. */
export async function volumesOf({ view, disk }: Pick<SummaryDeps, 'view' | 'disk'>, pod: FrozenPod, atMs: number): Promise<PodVolume[]> {
  const host = view.context()?.host
  if (!host || !disk) return []
  const time = formatTime(atMs)
  const measured = await view.volumeStatistics(pod.metadata.uid ?? '', createVolumeMeasures(host, disk))
  return measured.map(({ name, usage, isLocalEphemeral }) => {
    const volume = pod.spec.volumes?.find((one) => one.name === name)
    const claim = volume && claimNameOf(pod, volume)
    const pvcRef = claim === undefined ? {} : { pvcRef: { name: claim, namespace: pod.metadata.namespace ?? '' } }
    return { stats: { time, ...usage, name, ...pvcRef }, isLocalEphemeral }
  })
}
