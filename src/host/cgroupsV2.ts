/**
 * Cgroup v2 (L1): one hierarchy, in which a group's ancestors delegate controllers to it. Files and units as in the kernel's
 * Documentation/admin-guide/cgroup-v2.rst. Upstream: pkg/kubelet/cm/cgroup_v2_manager_linux.go, opencontainers/cgroups/fs2 (v1.36).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { childDirectories, keyed, numberIn, orMax, processesBelow, removeTree } from './cgroupFiles.ts'
import type { Cgroups } from './cgroups.ts'
import { makeDirectorySync, readTextIfExists } from './files.ts'

/** cpu.shares (2…262144) to cpu.weight (1…10000), the linear map that runc before 1.3 and the v1.36 kubelet use. */
export function cpuSharesToWeight(shares: number): number {
  return Math.floor(1 + ((Math.min(262_144, Math.max(2, shares)) - 2) * 9999) / 262_142)
}

/** The controllers that limits of the kubelet need, and io, whose statistics it reads. */
const neededControllers = ['cpu', 'cpuset', 'memory', 'pids', 'hugetlb']
const wantedControllers = [...neededControllers, 'io']

/** @param ownPath the group of this process: the root has no files of limits */
export function createCgroupsV2(root: string, ownPath = '/'): Cgroups {
  const at = (path: string, name: string) => join(root, path, name)
  const write = (path: string, name: string, value: string | undefined) => {
    if (value !== undefined) writeFileSync(at(path, name), value)
  }
  const controllersOf = (path: string): string[] => {
    const file = at(path, 'cgroup.controllers')
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ') : []
  }
  /** A controller works in a group only when every ancestor delegates it. */
  const delegate = (path: string) => {
    const parts = path.split('/').filter(Boolean)
    for (let depth = 0; depth < parts.length; depth++) {
      const parent = parts.slice(0, depth).join('/')
      const wanted = controllersOf(parent).filter((controller) => wantedControllers.includes(controller))
      makeDirectorySync(join(root, parent, parts[depth] ?? ''))
      enable(parent, wanted)
    }
  }
  /** The kernel enables all or none of a line: if it refuses one controller, the others are enabled one by one. */
  const enable = (path: string, controllers: readonly string[]) => {
    if (controllers.length === 0) return
    const line = (names: readonly string[]) => write(path, 'cgroup.subtree_control', names.map((name) => `+${name}`).join(' '))
    try {
      line(controllers)
    } catch {
      for (const name of controllers) {
        try {
          line([name])
        } catch {
          // What the group lacks then is named by exists() and by the file that cannot be written.
        }
      }
    }
  }
  return {
    version: 2,
    hasSwapLimits: existsSync(at(ownPath, 'memory.swap.max')),
    ensure: async (path, limits = {}) => {
      delegate(path)
      const period = limits.cpuPeriodUs ?? 100_000
      write(path, 'cpu.weight', limits.cpuShares === undefined ? undefined : String(cpuSharesToWeight(limits.cpuShares)))
      write(path, 'cpu.max', limits.cpuQuotaUs === undefined ? undefined : `${orMax(limits.cpuQuotaUs)} ${period}`)
      write(path, 'memory.max', orMax(limits.memoryLimitBytes))
      write(path, 'pids.max', orMax(limits.pidsLimit))
      write(path, 'memory.min', orMax(limits.memoryMinBytes))
      write(path, 'memory.low', orMax(limits.memoryLowBytes))
      write(path, 'memory.high', orMax(limits.memoryHighBytes))
      for (const [size, bytes] of Object.entries(limits.hugepageLimits ?? {})) {
        // A kernel may know a size without letting groups be limited in it.
        if (existsSync(at(path, `hugetlb.${size}.max`))) write(path, `hugetlb.${size}.max`, String(bytes))
      }
    },
    exists: async (path) => {
      const enabled = controllersOf(path)
      const needed = controllersOf('/').filter((controller) => neededControllers.includes(controller))
      return existsSync(at(path, 'cgroup.procs')) && needed.every((controller) => enabled.includes(controller))
    },
    children: (path) => childDirectories(join(root, path)),
    processes: (path) => processesBelow(join(root, path)),
    remove: (path) => removeTree(join(root, path)),
    stats: async (path) => {
      const text = await readTextIfExists(at(path, 'memory.stat'))
      if (text === undefined) return undefined
      const memory = keyed(text)
      // The root group has no memory.current.
      const usage = (await numberIn(at(path, 'memory.current'))) || (memory.get('anon') ?? 0) + (memory.get('file') ?? 0)
      return {
        cpuUsageNanoSeconds: (keyed((await readTextIfExists(at(path, 'cpu.stat'))) ?? '').get('usage_usec') ?? 0) * 1000,
        memoryUsageBytes: usage,
        memoryWorkingSetBytes: Math.max(0, usage - (memory.get('inactive_file') ?? 0)),
        memoryRssBytes: memory.get('anon') ?? 0,
        pageFaults: memory.get('pgfault') ?? 0,
        majorPageFaults: memory.get('pgmajfault') ?? 0,
        processes: await numberIn(at(path, 'pids.current')),
      }
    },
  }
}
