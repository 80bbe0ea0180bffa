/** What CSI drivers say that their volumes hold (L3). Upstream: pkg/volume/csi/csi_metrics.go (v1.36). */
import { dirname } from 'node:path'
import type { VolumeUsage } from '../../core/volumeStats.ts'
import type { MountedVolume, VolumeContext } from '../volumePlugin.ts'
import { blockPlaces } from './places.ts'
import { dataFile, loadData } from './volumeData.ts'

interface StatsAnswer {
  readonly usage: readonly { readonly available: number; readonly total: number; readonly used: number; readonly unit: string }[]
}

export function usageOf(volumes: VolumeContext, volume: MountedVolume): Promise<VolumeUsage> {
  return volumes.csi.usages.usage(volume.path, () => askDriver(volumes, volume))
}

async function askDriver(volumes: VolumeContext, { name, path, block }: MountedVolume): Promise<VolumeUsage> {
  const data = await loadData(volumes.host, block ? blockPlaces(volumes, name).data : `${dirname(path)}/${dataFile}`)
  if (!data) throw new Error(`nothing is known of the volume at ${path}`)
  const operation = volumes.csi.operation(data.driverName)
  if (!(await operation.supports('GET_VOLUME_STATS'))) throw new Error(`the driver ${data.driverName} has no statistics of volumes`)
  const { usage } = await operation.call<StatsAnswer>('NodeGetVolumeStats', { volumeId: data.volumeHandle, volumePath: path })
  if (usage.length === 0) throw new Error('failed to get usage from response. usage is nil')
  const last = (unit: string) => usage.findLast((one) => one.unit === unit)
  const [bytes, inodes] = [last('BYTES'), last('INODES')]
  return {
    ...{ capacityBytes: bytes?.total ?? 0, availableBytes: bytes?.available ?? 0, usedBytes: bytes?.used ?? 0 },
    ...{ inodes: inodes?.total ?? 0, inodesFree: inodes?.available ?? 0, inodesUsed: inodes?.used ?? 0 },
  }
}
