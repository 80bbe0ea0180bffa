/**
 * Reads what one control group uses (L1), all that monitoring shows, from the kernel's files: v1 and v2 alike. Cheap enough for every container of a
 * node every few seconds. Limits and processes are cgroups.ts' work. Upstream: what cAdvisor takes from libcontainer (v1.36).
 */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type DeviceIo, devicesOfV1, devicesOfV2 } from './blockIo.ts'
import { parseMountInfo } from './mounts.ts'

export interface CgroupUsage {
  readonly cpuNs: number
  readonly cpuUserNs: number
  readonly cpuSystemNs: number
  readonly periods: number
  readonly throttledPeriods: number
  readonly throttledNs: number
  readonly shares: number
  readonly periodUs: number
  /** 0: none. */
  readonly quotaUs: number
  readonly memory: CgroupMemory
  readonly processes: number
  readonly maxProcesses: number
  readonly oomKills: number
  /** Periods in which saved quota was used, and how much of it. */
  readonly burstPeriods: number
  readonly burstNs: number
  readonly devices: readonly DeviceIo[]
  /** Of v2, where the kernel counts stalls. */
  readonly pressure?: Readonly<Record<'cpu' | 'memory' | 'io', { readonly some: Stall; readonly full: Stall }>> | undefined
}

/** How long processes waited: microseconds since the group was made, and the share of the last so many seconds, in percent. */
export interface Stall {
  readonly totalUs: number
  readonly avg10: number
  readonly avg60: number
  readonly avg300: number
}

export interface CgroupMemory {
  readonly usageBytes: number
  readonly workingSetBytes: number
  readonly rssBytes: number
  readonly cacheBytes: number
  readonly swapBytes: number
  readonly mappedFileBytes: number
  readonly kernelBytes: number
  readonly maxUsageBytes: number
  /** 0: none. */
  readonly limitBytes: number
  readonly swapLimitBytes: number
  readonly reservationBytes: number
  readonly failures: number
  readonly activeFileBytes: number
  readonly inactiveFileBytes: number
  readonly pageFaults: number
  readonly majorPageFaults: number
  /** Usage of the group without its children; v2 reports only the sum. */
  readonly ownPageFaults: number
  readonly ownMajorPageFaults: number
}

/** Undefined: there is no such group. */
export type CgroupUsageReader = {
  usage(path: string): CgroupUsage | undefined
  /** The first process of the group itself. */
  process(path: string): number | undefined
}

/** More than this is the kernel's way to say that there is no limit. */
const unlimited = 2 ** 62

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

const numberIn = (file: string) => Number(textIn(file).trim()) || 0

function keyedIn(file: string): (key: string) => number {
  const values = new Map<string, number>()
  for (const line of textIn(file).split('\n')) {
    const at = line.indexOf(' ')
    if (at > 0) values.set(line.slice(0, at), Number(line.slice(at + 1)))
  }
  return (key) => values.get(key) ?? 0
}

const limitOf = (value: number) => (value > 0 && value < unlimited ? value : 0)

/** Looks at what is mounted, as detectCgroups does. */
export async function detectCgroupUsage(root = '/sys/fs/cgroup', mountInfo = '/proc/self/mountinfo'): Promise<CgroupUsageReader> {
  const mounts = parseMountInfo(await readFile(mountInfo, 'utf8'))
  if (mounts.some((mount) => mount.mountPoint === root && mount.filesystem === 'cgroup2')) return readerOfV2(root)
  const hierarchies = mounts.filter((mount) => mount.filesystem === 'cgroup' && mount.mountPoint.startsWith(`${root}/`))
  return readerOfV1((controller) => hierarchies.find(({ superOptions }) => superOptions.includes(controller))?.mountPoint)
}

/** Of USER_HZ, which is 100 wherever Linux runs containers. */
const nsPerTick = 1e7

/** @param directoryOf where a controller is mounted */
export function readerOfV1(directoryOf: (controller: string) => string | undefined): CgroupUsageReader {
  const at = (controller: string, path: string, name: string) => join(directoryOf(controller) ?? '/nonexistent', path, name)
  return {
    usage(path) {
      const stat = keyedIn(at('memory', path, 'memory.stat'))
      const usageBytes = numberIn(at('memory', path, 'memory.usage_in_bytes'))
      if (usageBytes === 0 && stat('hierarchical_memory_limit') === 0) return undefined
      const times = keyedIn(at('cpuacct', path, 'cpuacct.stat'))
      const throttling = keyedIn(at('cpu', path, 'cpu.stat'))
      return {
        cpuNs: numberIn(at('cpuacct', path, 'cpuacct.usage')),
        cpuUserNs: times('user') * nsPerTick,
        cpuSystemNs: times('system') * nsPerTick,
        periods: throttling('nr_periods'),
        throttledPeriods: throttling('nr_throttled'),
        throttledNs: throttling('throttled_time'),
        shares: numberIn(at('cpu', path, 'cpu.shares')),
        periodUs: numberIn(at('cpu', path, 'cpu.cfs_period_us')),
        quotaUs: Math.max(0, numberIn(at('cpu', path, 'cpu.cfs_quota_us'))),
        memory: {
          usageBytes,
          workingSetBytes: Math.max(0, usageBytes - stat('total_inactive_file')),
          rssBytes: stat('total_rss'),
          cacheBytes: stat('total_cache'),
          swapBytes: stat('total_swap'),
          mappedFileBytes: stat('total_mapped_file'),
          kernelBytes: numberIn(at('memory', path, 'memory.kmem.usage_in_bytes')),
          maxUsageBytes: numberIn(at('memory', path, 'memory.max_usage_in_bytes')),
          limitBytes: limitOf(numberIn(at('memory', path, 'memory.limit_in_bytes'))),
          swapLimitBytes: limitOf(numberIn(at('memory', path, 'memory.memsw.limit_in_bytes'))),
          reservationBytes: limitOf(numberIn(at('memory', path, 'memory.soft_limit_in_bytes'))),
          failures: numberIn(at('memory', path, 'memory.failcnt')),
          activeFileBytes: stat('total_active_file'),
          inactiveFileBytes: stat('total_inactive_file'),
          pageFaults: stat('total_pgfault'),
          majorPageFaults: stat('total_pgmajfault'),
          ownPageFaults: stat('pgfault'),
          ownMajorPageFaults: stat('pgmajfault'),
        },
        processes: numberIn(at('pids', path, 'pids.current')),
        maxProcesses: numberIn(at('pids', path, 'pids.max')),
        oomKills: keyedIn(at('memory', path, 'memory.oom_control'))('oom_kill'),
        burstPeriods: throttling('nr_bursts'),
        burstNs: throttling('burst_time'),
        devices: devicesOfV1(
          textIn(at('blkio', path, 'blkio.throttle.io_service_bytes_recursive')),
          textIn(at('blkio', path, 'blkio.throttle.io_serviced_recursive')),
        ),
      }
    },
    process: (path) => firstProcess(at('memory', path, 'cgroup.procs')),
  }
}

function firstProcess(file: string): number | undefined {
  return Number(textIn(file).split('\n')[0]) || undefined
}

/** @param root where the one hierarchy is mounted */
export function readerOfV2(root: string): CgroupUsageReader {
  const at = (path: string, name: string) => join(root, path, name)
  return {
    usage(path) {
      const stat = keyedIn(at(path, 'memory.stat'))
      const cpu = keyedIn(at(path, 'cpu.stat'))
      if (cpu('usage_usec') === 0 && stat('anon') + stat('file') + stat('kernel') === 0) return undefined
      const events = keyedIn(at(path, 'memory.events'))
      const usageBytes = numberIn(at(path, 'memory.current')) || stat('anon') + stat('file')
      const [quota = 'max', period = '100000'] = textIn(at(path, 'cpu.max')).trim().split(' ')
      const weight = numberIn(at(path, 'cpu.weight'))
      const pressure = (name: string) => pressureOf(textIn(at(path, `${name}.pressure`)))
      return {
        cpuNs: cpu('usage_usec') * 1000,
        cpuUserNs: cpu('user_usec') * 1000,
        cpuSystemNs: cpu('system_usec') * 1000,
        periods: cpu('nr_periods'),
        throttledPeriods: cpu('nr_throttled'),
        throttledNs: cpu('throttled_usec') * 1000,
        shares: weight === 0 ? 0 : Math.floor(2 + ((weight - 1) * 262_142) / 9999),
        periodUs: Number(period),
        quotaUs: Number(quota) || 0,
        memory: {
          usageBytes,
          workingSetBytes: Math.max(0, usageBytes - stat('inactive_file')),
          rssBytes: stat('anon'),
          cacheBytes: stat('file'),
          swapBytes: numberIn(at(path, 'memory.swap.current')),
          mappedFileBytes: stat('file_mapped'),
          kernelBytes: stat('kernel'),
          maxUsageBytes: numberIn(at(path, 'memory.peak')),
          limitBytes: limitOf(numberIn(at(path, 'memory.max'))),
          swapLimitBytes: limitOf(numberIn(at(path, 'memory.swap.max'))),
          reservationBytes: limitOf(numberIn(at(path, 'memory.low'))),
          failures: events('max'),
          activeFileBytes: stat('active_file'),
          inactiveFileBytes: stat('inactive_file'),
          pageFaults: stat('pgfault'),
          majorPageFaults: stat('pgmajfault'),
          ownPageFaults: stat('pgfault'),
          ownMajorPageFaults: stat('pgmajfault'),
        },
        processes: numberIn(at(path, 'pids.current')),
        maxProcesses: numberIn(at(path, 'pids.max')),
        oomKills: events('oom_kill'),
        burstPeriods: cpu('nr_bursts'),
        burstNs: cpu('burst_usec') * 1000,
        devices: devicesOfV2(textIn(at(path, 'io.stat'))),
        pressure: { cpu: pressure('cpu'), memory: pressure('memory'), io: pressure('io') },
      }
    },
    process: (path) => firstProcess(at(path, 'cgroup.procs')),
  }
}

function pressureOf(text: string) {
  return { some: stallOf(text, 'some'), full: stallOf(text, 'full') }
}

/** `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`. */
function stallOf(text: string, kind: 'some' | 'full'): Stall {
  const line = text.split('\n').find((one) => one.startsWith(`${kind} `)) ?? ''
  const value = (name: string) => Number(new RegExp(` ${name}=([\\d.]+)`).exec(line)?.[1] ?? 0)
  return { totalUs: value('total'), avg10: value('avg10'), avg60: value('avg60'), avg300: value('avg300') }
}

export interface InterfaceUsage {
  readonly name: string
  readonly receivedBytes: number
  readonly receivedPackets: number
  readonly receiveErrors: number
  readonly receiveDropped: number
  readonly sentBytes: number
  readonly sentPackets: number
  readonly sendErrors: number
  readonly sendDropped: number
}

/** Counters of the process's network namespace, without loopback. */
export function interfacesOf(pid: number | 'self'): InterfaceUsage[] {
  return parseInterfaces(textIn(`/proc/${pid}/net/dev`))
}

/** The lines of /proc/PID/net/dev. */
export function parseInterfaces(text: string): InterfaceUsage[] {
  return text.split('\n').flatMap((line): InterfaceUsage[] => {
    const [name = '', counts] = line.split(':')
    if (counts === undefined || name.trim() === 'lo') return []
    const [
      receivedBytes = 0,
      receivedPackets = 0,
      receiveErrors = 0,
      receiveDropped = 0,
      ,
      ,
      ,
      ,
      sentBytes = 0,
      sentPackets = 0,
      sendErrors = 0,
      sendDropped = 0,
    ] = counts.trim().split(/\s+/).map(Number)
    return [{ name: name.trim(), receivedBytes, receivedPackets, receiveErrors, receiveDropped, sentBytes, sentPackets, sendErrors, sendDropped }]
  })
}
