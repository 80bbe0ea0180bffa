/**
 * Cgroup v1 (L1): a hierarchy per controller. A group is made and limited by dozens of calls that the kernel answers from memory: they are made at once,
 * which costs less than a promise for each. Upstream: pkg/kubelet/cm/cgroup_v1_manager_linux.go (v1.36).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { childDirectories, keyed, numberIn, orMax, processesBelow, removeTree } from './cgroupFiles.ts'
import type { Cgroups } from './cgroups.ts'
import { listIfExists, makeDirectorySync, readTextIfExists } from './files.ts'

export interface Hierarchy {
  readonly directory: string
  readonly controllers: readonly string[]
}

export function createCgroupsV1(hierarchies: readonly Hierarchy[]): Cgroups {
  const directoryOf = (controller: string) => hierarchies.find((h) => h.controllers.includes(controller))?.directory
  const primary = directoryOf('memory') ?? hierarchies[0]?.directory ?? ''
  const file = (controller: string, path: string, name: string) => {
    const directory = directoryOf(controller)
    return directory === undefined ? undefined : join(directory, path, name)
  }
  const write = (controller: string, path: string, name: string, value: number | string | undefined) => {
    const target = file(controller, path, name)
    if (target !== undefined && value !== undefined) writeFileSync(target, String(value))
  }
  /** A new cpuset group has no cpus and can hold no process: it takes its parent's, which takes them from its own. */
  const inheritCpuset = (path: string, name: string): string => {
    const target = file('cpuset', path, name)
    if (target === undefined) return ''
    const own = existsSync(target) ? readFileSync(target, 'utf8').trim() : ''
    if (own !== '' || path === '/') return own
    const inherited = inheritCpuset(dirname(path), name)
    writeFileSync(target, inherited)
    return inherited
  }
  return {
    version: 1,
    hasSwapLimits: existsSync(file('memory', '/', 'memory.memsw.limit_in_bytes') ?? ''),
    ensure: async (path, limits = {}) => {
      for (const { directory } of hierarchies) makeDirectorySync(join(directory, path))
      for (const name of ['cpuset.cpus', 'cpuset.mems']) inheritCpuset(join('/', path), name)
      write('cpu', path, 'cpu.shares', limits.cpuShares)
      write('cpu', path, 'cpu.cfs_period_us', limits.cpuPeriodUs)
      write('cpu', path, 'cpu.cfs_quota_us', limits.cpuQuotaUs)
      write('memory', path, 'memory.limit_in_bytes', limits.memoryLimitBytes)
      write('pids', path, 'pids.max', orMax(limits.pidsLimit))
      for (const [size, bytes] of Object.entries(limits.hugepageLimits ?? {})) write('hugetlb', path, `hugetlb.${size}.limit_in_bytes`, bytes)
    },
    exists: async (path) => (await listIfExists(join(primary, path))).length > 0,
    children: (path) => childDirectories(join(primary, path)),
    processes: (path) => processesBelow(join(primary, path)),
    remove: async (path) => {
      await Promise.all(hierarchies.map((h) => removeTree(join(h.directory, path))))
    },
    stats: async (path) => {
      const statFile = file('memory', path, 'memory.stat')
      const text = statFile === undefined ? undefined : await readTextIfExists(statFile)
      if (text === undefined) return undefined
      const memory = keyed(text)
      const usage = await numberIn(file('memory', path, 'memory.usage_in_bytes') ?? '')
      return {
        cpuUsageNanoSeconds: await numberIn(file('cpuacct', path, 'cpuacct.usage') ?? ''),
        memoryUsageBytes: usage,
        memoryWorkingSetBytes: Math.max(0, usage - (memory.get('total_inactive_file') ?? 0)),
        memoryRssBytes: memory.get('total_rss') ?? 0,
        pageFaults: memory.get('total_pgfault') ?? 0,
        majorPageFaults: memory.get('total_pgmajfault') ?? 0,
        processes: await numberIn(file('pids', path, 'pids.current') ?? ''),
      }
    },
  }
}
