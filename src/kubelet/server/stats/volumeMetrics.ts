/** What claims' volumes hold, for /metrics (L3, pure). Upstream: kubelet/metrics/collectors/volume_stats.go (v1.36). */
import type { MetricFamily } from '#base/metricFamily'
import type { VolumeUsage } from '../../core/volumeStats.ts'
import { type LabelledFamily, metricFamilies } from './labelledFamilies.ts'

/** A volume as the Summary reports it. */
export interface VolumeStats extends VolumeUsage {
  readonly name: string
  /** Absent for volumes without a claim. */
  readonly pvcRef?: { readonly name: string; readonly namespace: string } | undefined
}

const definitions: readonly (readonly [name: string, help: string, read: (stats: VolumeStats) => number | undefined])[] = [
  ['available_bytes', 'Bytes that are free in the volume.', (stats) => stats.availableBytes],
  ['capacity_bytes', 'The size of the volume, in bytes.', (stats) => stats.capacityBytes],
  ['inodes', 'How many inodes the volume has.', (stats) => stats.inodes],
  ['inodes_free', 'How many inodes of the volume are free.', (stats) => stats.inodesFree],
  ['inodes_used', 'How many inodes of the volume are in use.', (stats) => stats.inodesUsed],
  ['used_bytes', 'Bytes in use in the volume.', (stats) => stats.usedBytes],
]

/** A claim that several pods use is reported once. */
export function volumeFamilies(volumes: readonly VolumeStats[]): MetricFamily[] {
  const claims = new Map<string, VolumeStats>()
  for (const stats of volumes) {
    const claim = stats.pvcRef && `${stats.pvcRef.namespace}/${stats.pvcRef.name}`
    if (claim !== undefined && !claims.has(claim)) claims.set(claim, stats)
  }
  const families = definitions.map(([name, help, read]): LabelledFamily => {
    const samples = [...claims.values()].flatMap((stats) => {
      const value = read(stats)
      const labels = { namespace: stats.pvcRef?.namespace ?? '', persistentvolumeclaim: stats.pvcRef?.name ?? '' }
      return value === undefined ? [] : [{ labels, value }]
    })
    return { name: `kubelet_volume_stats_${name}`, type: 'gauge', help: `[ALPHA] ${help}`, samples }
  })
  return metricFamilies(families)
}
