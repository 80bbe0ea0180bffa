/**
 * The ways in which the statistics of the kubelet's API measure volumes (L3): directories through the cache of diskUsage.ts, filesystems by statfs, devices by
 * their size. Upstream: pkg/volume/metrics_du.go, metrics_statfs.go, metrics_block.go (v1.36).
 */
import { readFile, stat } from 'node:fs/promises'
import type { KubeletHost } from '../../core/host.ts'
import type { VolumeMeasures } from '../../core/volumeStats.ts'
import type { DiskUsage } from './diskUsage.ts'

const sectorBytes = 512

export function createVolumeMeasures(host: KubeletHost, disk: DiskUsage): VolumeMeasures {
  return {
    directory: async (path) => {
      const [used, filesystem] = await Promise.all([disk.directory(path), host.filesystem(path)])
      return { ...filesystem, usedBytes: used.bytes, inodesUsed: used.inodes }
    },
    filesystem: async (path) => {
      const filesystem = await host.filesystem(path)
      const { capacityBytes, availableBytes, inodes, inodesFree } = filesystem
      return { ...filesystem, usedBytes: capacityBytes - availableBytes, inodesUsed: inodes - inodesFree }
    },
    device: async (path) => ({ capacityBytes: await deviceBytes(host.path(path)), availableBytes: 0, usedBytes: 0, inodes: 0, inodesFree: 0, inodesUsed: 0 }),
  }
}

/** Reads a device's size from sysfs, where it is a number of sectors. @throws Error for a path that is no block device */
async function deviceBytes(path: string): Promise<number> {
  const { rdev } = await stat(path)
  const major = (rdev >> 8) & 0xfff
  const minor = (rdev & 0xff) | ((rdev >> 12) & ~0xff)
  return Number(await readFile(`/sys/dev/block/${major}:${minor}/size`, 'utf8')) * sectorBytes
}
