/**
 * Usage of volumes (L3): what a volume plugin measures and what it measures with. Volumes implement it, the statistics of the kubelet's API read it.
 * Upstream: volume.Metrics in pkg/volume/volume.go (v1.36).
 */

/** Absent sizes and inodes are unknown. */
export interface VolumeUsage {
  readonly capacityBytes?: number | undefined
  readonly availableBytes?: number | undefined
  readonly usedBytes: number
  readonly inodes?: number | undefined
  readonly inodesFree?: number | undefined
  readonly inodesUsed: number
}

/** Ways to measure a path of the node. The caller decides how long results are cached. */
export interface VolumeMeasures {
  /** Adds up everything below the directory; capacity and free space describe its filesystem. */
  directory(path: string): Promise<VolumeUsage>
  /** Asks the filesystem that is mounted at the path. */
  filesystem(path: string): Promise<VolumeUsage>
  /** Reads the size of a block device. */
  device(path: string): Promise<VolumeUsage>
}

export interface MeasuredVolume {
  /** The pod's name for the volume. */
  readonly name: string
  readonly usage: VolumeUsage
  /** The volume counts as ephemeral storage of its pod. */
  readonly isLocalEphemeral: boolean
}
