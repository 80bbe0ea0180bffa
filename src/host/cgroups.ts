/**
 * Control groups (L1): one interface over v1 (a hierarchy per controller) and v2 (one hierarchy), with limits in Kubernetes' units.
 * Paths are cgroup paths ('/kubepods/burstable/pod1'), never directories. Names follow the cgroupfs driver. A group is made and limited by dozens of calls
 * that the kernel answers from memory: they are made at once, which costs less than a promise for each.
 * Upstream: pkg/kubelet/cm/cgroup_manager_linux.go, cgroup_v1_manager_linux.go, cgroup_v2_manager_linux.go (v1.36).
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isMissing, listIfExists, readTextIfExists } from './files.ts'
import { parseMountInfo } from './mounts.ts'

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
  /** Creates the group where it is missing (all hierarchies) and applies the limits. */
  ensure(path: string, limits?: CgroupLimits): Promise<void>
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

/** cpu.shares (2…262144) to cpu.weight (1…10000), the linear map that runc before 1.3 and the v1.36 kubelet use. */
export function cpuSharesToWeight(shares: number): number {
  return Math.floor(1 + ((Math.min(262_144, Math.max(2, shares)) - 2) * 9999) / 262_142)
}

/** Looks at what is mounted under /sys/fs/cgroup and answers with the driver for it. */
export async function detectCgroups(root = '/sys/fs/cgroup', mountInfo = '/proc/self/mountinfo'): Promise<Cgroups> {
  const mounts = parseMountInfo(await readFile(mountInfo, 'utf8'))
  const v2 = mounts.some((mount) => mount.mountPoint === root && mount.filesystem === 'cgroup2')
  if (v2) return createCgroupsV2(root)
  const hierarchies = mounts
    .filter((mount) => mount.filesystem === 'cgroup' && mount.mountPoint.startsWith(`${root}/`))
    .map((mount) => ({ directory: mount.mountPoint, controllers: mount.superOptions }))
  const unified = mounts.find((mount) => mount.filesystem === 'cgroup2' && mount.mountPoint.startsWith(`${root}/`))
  if (hierarchies.length === 0) throw new Error(`no cgroup hierarchy is mounted under ${root}`)
  return createCgroupsV1(unified ? [...hierarchies, { directory: unified.mountPoint, controllers: [] }] : hierarchies)
}

export interface Hierarchy {
  readonly directory: string
  readonly controllers: readonly string[]
}

const numberIn = async (file: string): Promise<number> => Number((await readTextIfExists(file))?.trim() ?? 0)

/** `key value` lines, as memory.stat has them. */
function keyed(text: string): Map<string, number> {
  return new Map(text.split('\n').flatMap((line) => (line ? [[line.slice(0, line.indexOf(' ')), Number(line.slice(line.indexOf(' ') + 1))] as const] : [])))
}

const busyAttempts = 25
const busyWaitMs = 20

async function removeTree(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    if (entry.isDirectory()) await removeTree(join(directory, entry.name))
  }
  for (let attempt = 1; ; attempt++) {
    try {
      await rmdir(directory)
      return
    } catch (error) {
      if (isMissing(error)) return
      // A process that is just ending still counts for a moment.
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || attempt === busyAttempts) throw error
      await new Promise((resolve) => setTimeout(resolve, busyWaitMs))
    }
  }
}

/** '2MB' of 2097152: how the kernel's files of huge pages are named. */
export function hugepageFileSize(pageBytes: number): string {
  return pageBytes % 2 ** 30 === 0 ? `${pageBytes / 2 ** 30}GB` : pageBytes % 2 ** 20 === 0 ? `${pageBytes / 2 ** 20}MB` : `${pageBytes / 1024}KB`
}

async function childDirectories(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
}

async function processesBelow(directory: string): Promise<number[]> {
  const own = ((await readTextIfExists(join(directory, 'cgroup.procs'))) ?? '').split('\n').filter(Boolean).map(Number)
  const below = await Promise.all((await childDirectories(directory)).map((name) => processesBelow(join(directory, name))))
  return [...own, ...below.flat()]
}

const orMax = (value: number | undefined) => (value === undefined ? undefined : value < 0 ? 'max' : String(value))

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
    ensure: async (path, limits = {}) => {
      for (const { directory } of hierarchies) mkdirSync(join(directory, path), { recursive: true })
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

export function createCgroupsV2(root: string): Cgroups {
  const at = (path: string, name: string) => join(root, path, name)
  const write = (path: string, name: string, value: string | undefined) => {
    if (value !== undefined) writeFileSync(at(path, name), value)
  }
  /** A controller works in a group only when every ancestor delegates it. */
  const delegate = (path: string) => {
    const parts = path.split('/').filter(Boolean)
    for (let depth = 0; depth < parts.length; depth++) {
      const parent = parts.slice(0, depth).join('/')
      const available = existsSync(at(parent, 'cgroup.controllers')) ? readFileSync(at(parent, 'cgroup.controllers'), 'utf8').trim().split(' ') : []
      const wanted = ['cpu', 'cpuset', 'memory', 'pids', 'io', 'hugetlb'].filter((controller) => available.includes(controller))
      mkdirSync(join(root, parent, parts[depth] ?? ''), { recursive: true })
      if (wanted.length > 0) write(parent, 'cgroup.subtree_control', wanted.map((controller) => `+${controller}`).join(' '))
    }
  }
  return {
    version: 2,
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
    exists: async (path) => (await listIfExists(join(root, path))).length > 0,
    children: (path) => childDirectories(join(root, path)),
    processes: (path) => processesBelow(join(root, path)),
    remove: (path) => removeTree(join(root, path)),
    stats: async (path) => {
      const text = await readTextIfExists(at(path, 'memory.stat'))
      if (text === undefined) return undefined
      const memory = keyed(text)
      const usage = await numberIn(at(path, 'memory.current'))
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
