/**
 * The part of /metrics/cadvisor that is about disks (L3, pure): what every group reads and writes by device, and of the node what its file systems hold
 * and what their devices do. Upstream: google/cadvisor metrics/prometheus.go, DiskIOMetrics and DiskUsageMetrics (as of v1.36).
 */
import type { DeviceIo, DiskUsage } from '#host/blockIo'
import { type LabelledFamily, type LabelledSample, type Labels, sorted } from './labelledFamilies.ts'
import type { GroupUsage } from './usage.ts'

export interface NodeDisks {
  readonly usages: readonly DiskUsage[]
  /** '/dev/vda'; empty for a device without a name. */
  deviceName(major: number, minor: number): string
}

export interface GroupRow {
  readonly labels: Labels
  readonly usage: Pick<GroupUsage, 'atMs' | 'devices'>
  /** The sample of the node also has the machine's disks. */
  readonly isNode?: boolean | undefined
}

interface Definition {
  readonly name: string
  readonly type: LabelledFamily['type']
  readonly help: string
  /** Value of a cgroup; absent: the kernel counts it for whole devices only. */
  readonly ofGroup?: (io: DeviceIo) => number
  /** Value of a file system of the node. */
  readonly ofDisk?: (disk: DiskUsage) => number
}

const seconds = (ms: number) => ms / 1000
const definition = (name: string, type: LabelledFamily['type'], help: string, read: Pick<Definition, 'ofGroup' | 'ofDisk'>): Definition => ({
  name: `container_fs_${name}`,
  type,
  help,
  ...read,
})

const definitions: readonly Definition[] = [
  definition('inodes_free', 'gauge', 'Inodes that are free.', { ofDisk: (disk) => disk.inodesFree }),
  definition('inodes_total', 'gauge', 'How many inodes there are.', { ofDisk: (disk) => disk.inodes }),
  definition('io_current', 'gauge', 'Reads and writes under way.', { ofDisk: (disk) => disk.ioInProgress }),
  definition('io_time_seconds_total', 'counter', 'How long something was read or written, in seconds.', { ofDisk: (disk) => seconds(disk.ioMs) }),
  definition('io_time_weighted_seconds_total', 'counter', 'The time of all reads and writes added up, in seconds.', {
    ofDisk: (disk) => seconds(disk.weightedIoMs),
  }),
  definition('limit_bytes', 'gauge', 'The size of the file system, in bytes.', { ofDisk: (disk) => disk.capacityBytes }),
  definition('read_seconds_total', 'counter', 'How long reads took, in seconds.', { ofDisk: (disk) => seconds(disk.readMs) }),
  definition('reads_bytes_total', 'counter', 'Bytes read.', { ofGroup: ({ bytes }) => bytes.Read ?? 0 }),
  definition('reads_merged_total', 'counter', 'Reads that were joined to others.', { ofDisk: (disk) => disk.readsMerged }),
  definition('reads_total', 'counter', 'Reads that were done.', {
    ofGroup: ({ requests }) => requests.Read ?? 0,
    ofDisk: (disk) => disk.reads,
  }),
  definition('sector_reads_total', 'counter', 'Sectors read.', { ofDisk: (disk) => disk.sectorsRead }),
  definition('sector_writes_total', 'counter', 'Sectors written.', { ofDisk: (disk) => disk.sectorsWritten }),
  definition('usage_bytes', 'gauge', 'Bytes in use on the file system.', { ofDisk: (disk) => disk.usedBytes }),
  definition('write_seconds_total', 'counter', 'How long writes took, in seconds.', { ofDisk: (disk) => seconds(disk.writeMs) }),
  definition('writes_bytes_total', 'counter', 'Bytes written.', { ofGroup: ({ bytes }) => bytes.Write ?? 0 }),
  definition('writes_merged_total', 'counter', 'Writes that were joined to others.', { ofDisk: (disk) => disk.writesMerged }),
  definition('writes_total', 'counter', 'Writes that were done.', {
    ofGroup: ({ requests }) => requests.Write ?? 0,
    ofDisk: (disk) => disk.writes,
  }),
]

export function diskFamilies(rows: readonly GroupRow[], disks: NodeDisks): LabelledFamily[] {
  // Labels are put in order once, and not for every metric again.
  const named = rows.map(({ labels, usage: { atMs, devices }, isNode }) => ({
    atMs,
    own: devices.map((io) => {
      const device = disks.deviceName(io.major, io.minor)
      const ofOperation = sorted({ ...labels, device, major: String(io.major), minor: String(io.minor), operation: '' })
      return { io, device, labels: sorted({ ...labels, device }), ofOperation }
    }),
    disks: isNode ? disks.usages.map((disk) => ({ disk, labels: sorted({ ...labels, device: disk.device }) })) : [],
  }))
  const ofDefinition = ({ ofGroup, ofDisk, ...family }: Definition): LabelledFamily => {
    const samples = named.flatMap(({ atMs, own, disks: whole }) => {
      const byDevice = new Map<string, LabelledSample>()
      if (ofGroup) for (const { io, device, labels } of own) byDevice.set(device, { labels, value: ofGroup(io), atMs })
      // The device's own counters; the node's cgroup would add a second sample of the same name.
      if (ofDisk) for (const { disk, labels } of whole) byDevice.set(disk.device, { labels, value: ofDisk(disk), atMs })
      return [...byDevice.values()]
    })
    return { ...family, samples }
  }
  const transferred = named.flatMap(({ atMs, own }) =>
    own.flatMap(({ io, ofOperation }) =>
      Object.entries(io.bytes).map(([operation, value]): LabelledSample => ({ labels: { ...ofOperation, operation }, value, atMs })),
    ),
  )
  return [
    ...definitions.map(ofDefinition),
    { name: 'container_blkio_device_usage_total', type: 'counter', help: 'Bytes moved to and from block devices, by operation.', samples: transferred },
  ]
}
