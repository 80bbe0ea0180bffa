/**
 * Control groups (L1): one interface over v1 (a hierarchy per controller, cgroupsV1.ts) and v2 (one hierarchy, cgroupsV2.ts), with limits in Kubernetes'
 * units; detectCgroups.ts chooses. Paths are cgroup paths ('/kubepods/burstable/pod1'), never directories. Names follow the cgroupfs driver.
 * Upstream: pkg/kubelet/cm/cgroup_manager_linux.go (v1.36).
 */

/** Absent members are left as they are; -1 lifts a limit. */
export interface CgroupLimits {
  readonly cpuShares?: number | undefined
  readonly cpuQuotaUs?: number | undefined
  readonly cpuPeriodUs?: number | undefined
  readonly memoryLimitBytes?: number | undefined
  readonly pidsLimit?: number | undefined
  /** Page size as the kernel's files are named ('2MB') → bytes. */
  readonly hugepageLimits?: Readonly<Record<string, number>> | undefined
  /** Of v2: what is never reclaimed, what is reclaimed last, and where the group is slowed down. 0 protects nothing, -1 never slows down. */
  readonly memoryMinBytes?: number | undefined
  readonly memoryLowBytes?: number | undefined
  readonly memoryHighBytes?: number | undefined
}

export interface CgroupStats {
  readonly cpuUsageNanoSeconds: number
  readonly memoryUsageBytes: number
  /** Usage less the inactive file cache: what eviction and metrics.k8s.io look at. */
  readonly memoryWorkingSetBytes: number
  readonly memoryRssBytes: number
  readonly pageFaults: number
  readonly majorPageFaults: number
  readonly processes: number
}

export interface Cgroups {
  readonly version: 1 | 2
  /** The kernel counts swap and can limit it. */
  readonly hasSwapLimits: boolean
  /** Creates the group where it is missing (all hierarchies) and applies the limits. */
  ensure(path: string, limits?: CgroupLimits): Promise<void>
  /** False also when a controller does not work in the group that the kernel has. */
  exists(path: string): Promise<boolean>
  /** Names of the child groups. */
  children(path: string): Promise<string[]>
  /** Processes of the group and of everything below it. */
  processes(path: string): Promise<number[]>
  /** Removes the group and everything below it from all hierarchies; an absent group is fine. Fails with EBUSY while processes live. */
  remove(path: string): Promise<void>
  /** Undefined when there is no such group. */
  stats(path: string): Promise<CgroupStats | undefined>
}

/** '2MB' of 2097152: how the kernel's files of huge pages are named. */
export function hugepageFileSize(pageBytes: number): string {
  return pageBytes % 2 ** 30 === 0 ? `${pageBytes / 2 ** 30}GB` : pageBytes % 2 ** 20 === 0 ? `${pageBytes / 2 ** 20}MB` : `${pageBytes / 1024}KB`
}
