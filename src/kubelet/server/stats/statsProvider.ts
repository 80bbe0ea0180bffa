/**
 * The statistics of the kubelet's API (L3). In order: usage.ts reads cgroups and the runtime, diskUsage.ts and volumeMeasures.ts read the disk, then
 * summary.ts formats the Summary, and resourceMetrics.ts, cadvisorMetrics.ts and volumeMetrics.ts, which are loaded when they are first asked for, the metrics
 * (labelledFamilies.ts).
 * Upstream: kubelet/server/stats (v1.36).
 */
import type { Clock } from '#base/clock'
import type { MetricFamily } from '#base/metricFamily'
import { createDisks } from '#host/blockIo'
import type { DirectoryUsage } from '#host/directoryUsage'
import type { KubeletView } from '../../core/kubeletView.ts'
import { createDiskUsage, type DiskUsage } from './diskUsage.ts'
import { type LabelledSample, metricFamilies } from './labelledFamilies.ts'
import { logUsage, summaryOf, volumesOf } from './summary.ts'
import { createUsageSource } from './usage.ts'

export interface StatsProvider {
  /** The Summary of the v1alpha1 stats API. */
  summary(onlyCpuAndMemory: boolean): Promise<object>
  /** /metrics/resource. */
  resourceMetrics(): Promise<MetricFamily[]>
  /** /metrics/cadvisor. */
  cadvisorMetrics(): Promise<MetricFamily[]>
  /** The metrics of claims' volumes in /metrics. */
  volumeMetrics(): Promise<MetricFamily[]>
  /** The metrics of containers' logs in /metrics. */
  logMetrics(): Promise<MetricFamily[]>
}

/** The image of sandboxes. */
const pauseImage = 'skiff.internal/pause:1'

export function createStatsProvider(view: KubeletView, clock: Clock): StatsProvider {
  const source = createUsageSource(view, clock)
  let disk: DiskUsage | undefined
  const diskUsage = (): DiskUsage | undefined => {
    const host = view.context()?.host
    if (host) disk ??= createDiskUsage(host, clock, Math.max(0, view.config.volumeStatsAggPeriodMs))
    return disk
  }
  return {
    async summary(onlyCpuAndMemory) {
      const writableLayers = onlyCpuAndMemory ? new Map<string, DirectoryUsage>() : await writableLayersOf(view)
      return summaryOf({ view, usage: await source.now(), disk: diskUsage(), onlyCpuAndMemory, writableLayers })
    },
    async resourceMetrics() {
      const { resourceFamilies } = await import('./resourceMetrics.ts')
      return resourceFamilies(await source.now())
    },
    async cadvisorMetrics() {
      const context = view.context()
      const disks = context?.host ? createDisks() : undefined
      const [usage, usages] = await Promise.all([source.now(), disks?.usages()])
      const machine = context?.machineInfo
      const { cadvisorFamilies } = await import('./cadvisorMetrics.ts')
      return cadvisorFamilies(usage, { machine, pauseImage, disks: disks && usages && { usages, deviceName: disks.deviceName } })
    },
    async logMetrics() {
      if (!view.context()?.host) return []
      const measured = (await source.now()).pods.flatMap((pod) =>
        pod.containers.map(async (container): Promise<LabelledSample> => {
          const { name = '', namespace = '' } = pod.pod.metadata
          const { bytes } = await logUsage({ view, disk: diskUsage() }, pod, container)
          return { labels: { container: container.container, namespace, pod: name, uid: pod.uid }, value: bytes }
        }),
      )
      const help = '[ALPHA] What the logs of a container take on the file system, in bytes.'
      return metricFamilies([{ name: 'kubelet_container_log_filesystem_used_bytes', type: 'gauge', help, samples: await Promise.all(measured) }])
    },
    async volumeMetrics() {
      if (!view.context()?.host) return []
      const withClaims = view.pods().filter(({ spec }) => spec.volumes?.some((one) => one.persistentVolumeClaim || one.ephemeral))
      if (withClaims.length === 0) return []
      const volumes = await Promise.all(withClaims.map((pod) => volumesOf({ view, disk: diskUsage() }, pod, clock.now())))
      const { volumeFamilies } = await import('./volumeMetrics.ts')
      return volumeFamilies(volumes.flat().map(({ stats }) => stats))
    },
  }
}

/** Only the runtime knows what its snapshots hold. */
async function writableLayersOf(view: KubeletView): Promise<Map<string, DirectoryUsage>> {
  const stats = await view.runtime.listContainerStats()
  return new Map(
    stats.map(({ attributes, writableLayer }) => [
      attributes.id,
      { bytes: writableLayer?.usedBytes?.value ?? 0, inodes: writableLayer?.inodesUsed?.value ?? 0 },
    ]),
  )
}
