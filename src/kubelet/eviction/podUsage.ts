/**
 * A pod's usage of the resources that eviction watches (L3, pure).
 * Upstream: kubelet/eviction/helpers.go podDiskUsage, podLocalEphemeralStorageUsage, memoryUsage, processUsage (v1.36).
 */

export interface DiskUsage {
  readonly bytes: number
  readonly inodes: number
}

export interface ContainerUsage {
  readonly name: string
  /** Working set. */
  readonly memoryBytes: number
  readonly rootfs: DiskUsage
  readonly logs: DiskUsage
}

export interface PodUsage {
  readonly containers: readonly ContainerUsage[]
  readonly processes: number
  /** Files of the kubelet that containers may write: the hosts file and termination logs. Absent: not measured. */
  readonly managedFiles?: DiskUsage | undefined
  /** Local volumes that were measured, by name. */
  readonly volumes: ReadonlyMap<string, DiskUsage>
}

/** Which parts of a pod lie on the file system in question. */
export type DiskPart = 'rootfs' | 'logs' | 'volumes'
export const allDiskParts: readonly DiskPart[] = ['rootfs', 'logs', 'volumes']

export const memoryOf = (usage: PodUsage) => usage.containers.reduce((sum, container) => sum + container.memoryBytes, 0)

/** Bytes or inodes, of those parts. */
export function diskOf(usage: PodUsage, unit: keyof DiskUsage, parts: readonly DiskPart[] = allDiskParts): number {
  const containers = usage.containers.reduce(
    (sum, { rootfs, logs }) => sum + (parts.includes('rootfs') ? rootfs[unit] : 0) + (parts.includes('logs') ? logs[unit] : 0),
    0,
  )
  // They lie where the volumes do.
  const others = parts.includes('volumes') ? [...usage.volumes.values(), ...(usage.managedFiles ? [usage.managedFiles] : [])] : []
  return others.reduce((sum, one) => sum + one[unit], containers)
}
