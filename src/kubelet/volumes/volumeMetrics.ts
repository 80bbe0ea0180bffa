/** What the volume manager counts (L3), under upstream's names. Upstream: volume/util/metrics.go, volumemanager/metrics, kubelet/metrics (v1.36). */
import type { KubeletContext } from '../core/context.ts'
import type { MountedVolume } from './volumePlugin.ts'

export interface VolumeMetrics {
  /** Runs the operation and records how long it took and how it ended. */
  timed<T>(plugin: string, operation: string, work: () => Promise<T>): Promise<T>
  /** Sets the gauges from the volumes of all pods: those that are mounted, and those that pods need. */
  volumes(mounted: Iterable<PodVolumes>, needed: Iterable<PodVolumes>): void
  orphans(cleaned: number, errors: number): void
}

/** By the volume's name in the pod. */
export type PodVolumes = ReadonlyMap<string, Pick<MountedVolume, 'plugin'>>

export function createVolumeMetrics({ metrics, clock }: Pick<KubeletContext, 'metrics' | 'clock'>): VolumeMetrics {
  const duration = metrics.histogram({
    name: 'storage_operation_duration_seconds',
    help: 'How long an operation on a volume took, in seconds.',
    labels: ['volume_plugin', 'operation_name', 'status', 'migrated'],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
  })
  const total = metrics.gauge({ name: 'volume_manager_total_volumes', help: 'How many volumes the kubelet knows of.', labels: ['plugin_name', 'state'] })
  const cleaned = metrics.gauge({
    name: 'kubelet_orphan_pod_cleaned_volumes',
    help: 'Orphaned pods whose volumes the last cleanup removed.',
  })
  const failed = metrics.gauge({
    name: 'kubelet_orphan_pod_cleaned_volumes_errors',
    help: 'Orphaned pods whose volumes the last cleanup failed to remove.',
  })
  const shown = { actual_state_of_world: new Set<string>(), desired_state_of_world: new Set<string>() }
  const show = (state: keyof typeof shown, pods: Iterable<PodVolumes>) => {
    const counts = new Map<string, number>()
    for (const volumes of pods) for (const { plugin } of volumes.values()) counts.set(plugin, (counts.get(plugin) ?? 0) + 1)
    for (const plugin of new Set([...shown[state], ...counts.keys()])) total.set(counts.get(plugin) ?? 0, { plugin_name: plugin, state })
    shown[state] = new Set(counts.keys())
  }
  return {
    timed: async (plugin, operation, work) => {
      const startedMs = clock.monotonicMs()
      const observe = (status: string) =>
        duration.observe((clock.monotonicMs() - startedMs) / 1000, { volume_plugin: plugin, operation_name: operation, status, migrated: 'false' })
      try {
        const result = await work()
        observe('success')
        return result
      } catch (error) {
        observe('fail-unknown')
        throw error
      }
    },
    volumes: (mounted, needed) => {
      show('actual_state_of_world', mounted)
      show('desired_state_of_world', needed)
    },
    orphans: (count, errors) => {
      cleaned.set(count)
      failed.set(errors)
    },
  }
}
