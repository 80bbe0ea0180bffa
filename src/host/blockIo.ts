/**
 * What control groups read from and write to block devices, and what the machine's disks are called and hold (L1), from the kernel's files.
 * Upstream: what cAdvisor takes from libcontainer's blkio statistics, and its fs package (v1.36).
 */
import { readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { readFile, statfs } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { bareMap } from '#base/bareMap'
import { parseMountInfo } from './mounts.ts'

/** Counters of one device since the group was made, by the kernel's names of operations: Read, Write, Discard, and in v1 also Sync, Async, Total. */
export interface DeviceIo {
  readonly major: number
  readonly minor: number
  readonly bytes: Readonly<Record<string, number>>
  readonly requests: Readonly<Record<string, number>>
}

interface Counts {
  readonly bytes: Record<string, number>
  readonly requests: Record<string, number>
}

type Counted = readonly [device: string, kind: keyof Counts, operation: string, value: number]

function collect(all: readonly Counted[]): DeviceIo[] {
  const devices = new Map<string, Counts>()
  for (const [device, kind, operation, value] of all) {
    const counts = devices.get(device) ?? { bytes: {}, requests: {} }
    counts[kind][operation] = value
    devices.set(device, counts)
  }
  return [...devices].map(([device, counts]) => {
    const [major = 0, minor = 0] = device.split(':').map(Number)
    return { major, minor, ...counts }
  })
}

/** `8:0 Read 4096` lines; the last, a total of all devices, names none. */
export function devicesOfV1(serviceBytes: string, serviced: string): DeviceIo[] {
  const parse = (text: string, kind: keyof Counts) =>
    text.split('\n').flatMap((line): Counted[] => {
      const [device = '', operation, value] = line.split(' ')
      return operation === undefined || value === undefined ? [] : [[device, kind, operation, Number(value)]]
    })
  return collect([...parse(serviceBytes, 'bytes'), ...parse(serviced, 'requests')])
}

const keysOfV2: Readonly<Record<string, readonly [kind: keyof Counts, operation: string]>> = bareMap({
  rbytes: ['bytes', 'Read'],
  wbytes: ['bytes', 'Write'],
  dbytes: ['bytes', 'Discard'],
  rios: ['requests', 'Read'],
  wios: ['requests', 'Write'],
  dios: ['requests', 'Discard'],
})

/** `8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0` lines. */
export function devicesOfV2(text: string): DeviceIo[] {
  return collect(
    text.split('\n').flatMap((line) => {
      const [device = '', ...pairs] = line.split(' ')
      return pairs.flatMap((pair): Counted[] => {
        const [key = '', value] = pair.split('=')
        const known = keysOfV2[key]
        return known ? [[device, ...known, Number(value)]] : []
      })
    }),
  )
}

/** A file system on a block device, and what was done to that device since the machine was started. */
export interface DiskUsage {
  /** '/dev/vda1'. */
  readonly device: string
  readonly capacityBytes: number
  readonly usedBytes: number
  readonly inodes: number
  readonly inodesFree: number
  readonly reads: number
  readonly readsMerged: number
  readonly sectorsRead: number
  readonly readMs: number
  readonly writes: number
  readonly writesMerged: number
  readonly sectorsWritten: number
  readonly writeMs: number
  readonly ioInProgress: number
  readonly ioMs: number
  readonly weightedIoMs: number
}

export interface Disks {
  /** '/dev/vda'; empty for a device that the kernel has no name for. */
  deviceName(major: number, minor: number): string
  /** Mounted file systems on block devices, each device once. */
  usages(): Promise<DiskUsage[]>
}

/** For one look: names of devices are remembered. @param root below which /proc and /sys are; another one than '' for tests */
export function createDisks(root = ''): Disks {
  const names = new Map<string, string>()
  const deviceName = (major: number, minor: number) => {
    const device = `${major}:${minor}`
    const name = names.get(device) ?? nameOf(root, device)
    names.set(device, name)
    return name
  }
  return {
    deviceName,
    async usages() {
      const mountPoints = new Map<string, string>()
      for (const { source, mountPoint } of parseMountInfo(await readFile(`${root}/proc/self/mountinfo`, 'utf8'))) {
        if (source.startsWith('/dev/') && !mountPoints.has(source)) mountPoints.set(source, mountPoint)
      }
      const activity = diskActivity(readFileSync(`${root}/proc/diskstats`, 'utf8'))
      const all = [...mountPoints].map(async ([device, mountPoint]): Promise<DiskUsage[]> => {
        try {
          const { blocks, bfree, bsize, files, ffree } = await statfs(join(root, mountPoint))
          const space = { capacityBytes: blocks * bsize, usedBytes: (blocks - bfree) * bsize, inodes: files, inodesFree: ffree }
          return [{ device, ...space, ...activityOf(activity.get(kernelName(root, device)) ?? []) }]
        } catch {
          // Unmounted since, or hung: the others still count.
          return []
        }
      })
      return (await Promise.all(all)).flat()
    },
  }
}

function nameOf(root: string, device: string): string {
  try {
    return `/dev/${basename(readlinkSync(join(root, `/sys/dev/block/${device}`)))}`
  } catch {
    return ''
  }
}

/** Kernel name → the counts of /proc/diskstats in their order. */
function diskActivity(text: string): Map<string, number[]> {
  return new Map(
    text.split('\n').flatMap((line) => {
      const [, , name, ...counts] = line.trim().split(/\s+/)
      return name === undefined ? [] : [[name, counts.map(Number)] as const]
    }),
  )
}

/** What /dev/mapper/… and /dev/disk/by-… are links to. */
function kernelName(root: string, device: string): string {
  try {
    return basename(realpathSync(join(root, device)))
  } catch {
    return basename(device)
  }
}

function activityOf(counts: readonly number[]) {
  const [reads = 0, readsMerged = 0, sectorsRead = 0, readMs = 0, writes = 0, writesMerged = 0, sectorsWritten = 0, writeMs = 0, ...times] = counts
  const [ioInProgress = 0, ioMs = 0, weightedIoMs = 0] = times
  return { reads, readsMerged, sectorsRead, readMs, writes, writesMerged, sectorsWritten, writeMs, ioInProgress, ioMs, weightedIoMs }
}
