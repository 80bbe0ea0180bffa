/**
 * /metrics/cadvisor (L3, pure): containers, pods, their sandboxes and the node under cAdvisor's names and labels. A pod's network is counted at its
 * sandbox, as with containerd upstream. Upstream: google/cadvisor metrics/prometheus.go, prometheus_machine.go (as of v1.36).
 */
import type { MetricFamily } from '#base/metricFamily'
import type { InterfaceUsage } from '#host/cgroupUsage'
import type { MachineInfo } from '../../core/host.ts'
import { placesOf } from '../../core/machineTopology.ts'
import { diskFamilies, type NodeDisks } from './cadvisorDisks.ts'
import { type LabelledFamily, type LabelledSample, type Labels, metricFamilies, sorted } from './labelledFamilies.ts'
import type { GroupUsage, NodeUsage } from './usage.ts'

interface Row {
  readonly labels: Labels
  readonly usage: GroupUsage
  readonly startedAtMs?: number | undefined
  readonly network?: readonly InterfaceUsage[] | undefined
  /** The sample of the node also has the machine's disks. */
  readonly isNode?: boolean | undefined
}

const row = (usage: GroupUsage, labels: { container?: string; image?: string; name?: string; namespace?: string; pod?: string } = {}): Row => {
  const { container = '', image = '', name = '', namespace = '', pod = '' } = labels
  return { usage, labels: { container, id: usage.id, image, name, namespace, pod } }
}

function rowsOf({ node, network, groups, pods }: NodeUsage, pauseImage: string): Row[] {
  return [
    // The node's root cgroup is reported as `/`, even if the pods are below another one.
    { ...row({ ...node, id: '/' }), network, isNode: true },
    ...groups.map((group) => row(group)),
    ...pods.flatMap(({ pod: { metadata }, group, sandbox, containers, network: own }) => {
      const of = { namespace: metadata.namespace ?? '', pod: metadata.name ?? '' }
      return [
        row(group, of),
        ...(sandbox ? [{ ...row(sandbox, { ...of, image: pauseImage, name: sandbox.id.slice(sandbox.id.lastIndexOf('/') + 1) }), network: own }] : []),
        ...containers.map((container) => ({
          ...row(container, { ...of, container: container.container, image: container.image, name: container.name }),
          startedAtMs: container.startedAtMs,
        })),
      ]
    }),
  ]
}

type Definition = readonly [name: string, type: LabelledFamily['type'], help: string, read: (row: Row) => number | undefined]

const seconds = (ns: number) => ns / 1e9
const throttled =
  (read: (usage: GroupUsage) => number) =>
  ({ usage }: Row) =>
    usage.quotaUs > 0 ? read(usage) : undefined
const stalled =
  (resource: 'cpu' | 'memory' | 'io', kind: 'some' | 'full') =>
  ({ usage }: Row) =>
    usage.pressure === undefined ? undefined : usage.pressure[resource][kind].totalUs / 1e6

const definitions: readonly Definition[] = [
  ['container_cpu_cfs_burst_periods_total', 'counter', 'How many periods used quota that was saved.', throttled(({ burstPeriods }) => burstPeriods)],
  ['container_cpu_cfs_burst_seconds_total', 'counter', 'How long saved quota was used, in seconds.', throttled(({ burstNs }) => seconds(burstNs))],
  ['container_cpu_cfs_periods_total', 'counter', 'How many periods of CPU quota have gone by.', throttled(({ periods }) => periods)],
  [
    'container_cpu_cfs_throttled_periods_total',
    'counter',
    'How many periods of CPU quota were cut short.',
    throttled(({ throttledPeriods }) => throttledPeriods),
  ],
  [
    'container_cpu_cfs_throttled_seconds_total',
    'counter',
    'How long processes had to wait for CPU quota, in seconds.',
    throttled(({ throttledNs }) => seconds(throttledNs)),
  ],
  ['container_cpu_system_seconds_total', 'counter', 'CPU time used in the kernel, in seconds.', ({ usage }) => seconds(usage.cpuSystemNs)],
  ['container_cpu_user_seconds_total', 'counter', 'CPU time used outside the kernel, in seconds.', ({ usage }) => seconds(usage.cpuUserNs)],
  ['container_last_seen', 'gauge', 'When the container was last looked at, in seconds since 1970.', ({ usage }) => Math.floor(usage.atMs / 1000)],
  ['container_memory_cache', 'gauge', 'Bytes of files in memory.', ({ usage }) => usage.memory.cacheBytes],
  ['container_memory_failcnt', 'counter', 'How often the limit of memory was met.', ({ usage }) => usage.memory.failures],
  ['container_memory_kernel_usage', 'gauge', 'Bytes that the kernel holds for it.', ({ usage }) => usage.memory.kernelBytes],
  ['container_memory_mapped_file', 'gauge', 'Bytes of files that are mapped.', ({ usage }) => usage.memory.mappedFileBytes],
  ['container_memory_max_usage_bytes', 'gauge', 'The most memory ever used, in bytes.', ({ usage }) => usage.memory.maxUsageBytes],
  ['container_memory_rss', 'gauge', 'Bytes of memory that no file backs.', ({ usage }) => usage.memory.rssBytes],
  ['container_memory_swap', 'gauge', 'Bytes in swap.', ({ usage }) => usage.memory.swapBytes],
  ['container_memory_total_active_file_bytes', 'gauge', 'Bytes of files in memory that were used of late.', ({ usage }) => usage.memory.activeFileBytes],
  [
    'container_memory_total_inactive_file_bytes',
    'gauge',
    'Bytes of files in memory that may be taken back first.',
    ({ usage }) => usage.memory.inactiveFileBytes,
  ],
  ['container_memory_usage_bytes', 'gauge', 'Bytes of memory in use, however long ago they were touched.', ({ usage }) => usage.memory.usageBytes],
  ['container_memory_working_set_bytes', 'gauge', 'Bytes of memory in use that cannot be taken back at once.', ({ usage }) => usage.memory.workingSetBytes],
  ['container_oom_events_total', 'counter', 'How many processes the kernel has killed for want of memory.', ({ usage }) => usage.oomKills],
  ['container_pressure_cpu_stalled_seconds_total', 'counter', 'How long no process could go on for want of CPU, in seconds.', stalled('cpu', 'full')],
  ['container_pressure_cpu_waiting_seconds_total', 'counter', 'How long some process had to wait for CPU, in seconds.', stalled('cpu', 'some')],
  ['container_pressure_io_stalled_seconds_total', 'counter', 'How long no process could go on for want of I/O, in seconds.', stalled('io', 'full')],
  ['container_pressure_io_waiting_seconds_total', 'counter', 'How long some process had to wait for I/O, in seconds.', stalled('io', 'some')],
  ['container_pressure_memory_stalled_seconds_total', 'counter', 'How long no process could go on for want of memory, in seconds.', stalled('memory', 'full')],
  ['container_pressure_memory_waiting_seconds_total', 'counter', 'How long some process had to wait for memory, in seconds.', stalled('memory', 'some')],
  ['container_processes', 'gauge', 'How many processes run.', ({ usage }) => usage.processes],
  ['container_spec_cpu_period', 'gauge', 'Over how many microseconds the CPU quota counts.', ({ usage }) => usage.periodUs || undefined],
  ['container_spec_cpu_quota', 'gauge', 'Microseconds of CPU in a period.', ({ usage }) => usage.quotaUs || undefined],
  ['container_spec_cpu_shares', 'gauge', 'The weight of its CPU time.', ({ usage }) => usage.shares || undefined],
  ['container_spec_memory_limit_bytes', 'gauge', 'The most memory it may use, in bytes; 0: no limit.', ({ usage }) => usage.memory.limitBytes],
  ['container_spec_memory_reservation_limit_bytes', 'gauge', 'Memory that is kept for it, in bytes.', ({ usage }) => usage.memory.reservationBytes],
  ['container_spec_memory_swap_limit_bytes', 'gauge', 'The most swap it may use, in bytes; 0: no limit.', ({ usage }) => usage.memory.swapLimitBytes],
  [
    'container_start_time_seconds',
    'gauge',
    'When it was started, in seconds since 1970.',
    ({ startedAtMs }) => (startedAtMs === undefined ? undefined : startedAtMs / 1000),
  ],
  ['container_threads', 'gauge', 'How many threads there are.', ({ usage }) => usage.processes],
  ['container_threads_max', 'gauge', 'How many threads there may be; 0: no limit.', ({ usage }) => usage.maxProcesses],
]

const networkDefinitions: readonly (readonly [name: string, help: string, read: (one: InterfaceUsage) => number])[] = [
  ['container_network_receive_bytes_total', 'Bytes that came in.', (one) => one.receivedBytes],
  ['container_network_receive_errors_total', 'How many errors there were with what came in.', (one) => one.receiveErrors],
  ['container_network_receive_packets_dropped_total', 'Packets that came in and were dropped.', (one) => one.receiveDropped],
  ['container_network_receive_packets_total', 'Packets that came in.', (one) => one.receivedPackets],
  ['container_network_transmit_bytes_total', 'Bytes that went out.', (one) => one.sentBytes],
  ['container_network_transmit_errors_total', 'How many errors there were with what was to go out.', (one) => one.sendErrors],
  ['container_network_transmit_packets_dropped_total', 'Packets that were to go out and were dropped.', (one) => one.sendDropped],
  ['container_network_transmit_packets_total', 'Packets that went out.', (one) => one.sentPackets],
]

export interface CadvisorFacts {
  readonly machine: MachineInfo | undefined
  readonly pauseImage: string
  /** Absent on simulated nodes. */
  readonly disks?: NodeDisks | undefined
}

export function cadvisorFamilies(usage: NodeUsage, { machine, pauseImage, disks }: CadvisorFacts): MetricFamily[] {
  const rows = rowsOf(usage, pauseImage)
  const ofRows = definitions.map(([name, type, help, read]): LabelledFamily => {
    const samples = rows.flatMap((one): LabelledSample[] => {
      const value = read(one)
      return value === undefined ? [] : [{ labels: one.labels, value, atMs: one.usage.atMs }]
    })
    return { name, type, help, samples }
  })
  const ofNetworks = networkDefinitions.map(([name, help, read]): LabelledFamily => {
    const samples = rows.flatMap(({ labels, usage: { atMs }, network }) =>
      (network ?? []).map((one) => ({ labels: sorted({ ...labels, interface: one.name }), value: read(one), atMs })),
    )
    return { name, type: 'counter', help, samples }
  })
  const ofDisks = disks ? diskFamilies(rows, disks) : []
  const families = [...ofRows, ...ofNetworks, ...ofDisks, cpuUsage(rows), memoryFailures(rows), ...machineFamilies(machine)]
  return metricFamilies(families.sort((a, b) => (a.name < b.name ? -1 : 1)))
}

function cpuUsage(rows: readonly Row[]): LabelledFamily {
  const samples = rows.map(({ labels, usage }) => ({ labels: sorted({ ...labels, cpu: 'total' }), value: seconds(usage.cpuNs), atMs: usage.atMs }))
  return { name: 'container_cpu_usage_seconds_total', type: 'counter', help: 'CPU time used, in seconds.', samples }
}

function memoryFailures(rows: readonly Row[]): LabelledFamily {
  const samples = rows.flatMap(({ labels, usage: { memory, atMs } }) => {
    const sample = (failure_type: string, scope: string, value: number) => ({ labels: sorted({ ...labels, failure_type, scope }), value, atMs })
    return [
      sample('pgfault', 'container', memory.ownPageFaults),
      sample('pgmajfault', 'container', memory.ownMajorPageFaults),
      sample('pgfault', 'hierarchy', memory.pageFaults),
      sample('pgmajfault', 'hierarchy', memory.majorPageFaults),
    ]
  })
  return { name: 'container_memory_failures_total', type: 'counter', help: 'How often memory that was asked for was not there at once.', samples }
}

function machineFamilies(machine: MachineInfo | undefined): LabelledFamily[] {
  const scraped = (name: string, what: string): LabelledFamily => ({
    name,
    type: 'gauge',
    help: `1 when the figures of the ${what} could not be had, else 0.`,
    samples: [{ value: 0 }],
  })
  const always = [scraped('container_scrape_error', 'container'), scraped('machine_scrape_error', 'machine')]
  if (!machine) return always
  const labels = { boot_id: machine.bootID, machine_id: machine.machineID, system_uuid: machine.systemUUID }
  const gauge = (name: string, help: string, value: number): LabelledFamily => ({ name, type: 'gauge', help, samples: [{ labels, value }] })
  const { topology } = machine
  const version = { cadvisorRevision: '', cadvisorVersion: '', dockerVersion: '', kernelVersion: machine.kernelVersion, osVersion: machine.osImage }
  return [
    ...always,
    {
      name: 'cadvisor_version_info',
      type: 'gauge',
      help: 'Always 1: the labels say which kernel and system this is.',
      samples: [{ labels: version, value: 1 }],
    },
    gauge('machine_cpu_cores', 'How many CPUs the machine has, threads of cores included.', machine.cpus),
    gauge('machine_cpu_physical_cores', 'How many cores the machine has.', topology ? placesOf(topology, 'core').length : machine.cpus),
    gauge('machine_cpu_sockets', 'How many sockets the machine has.', topology ? placesOf(topology, 'socket').length : 1),
    gauge('machine_memory_bytes', 'The memory of the machine, in bytes.', machine.memoryBytes),
    gauge('machine_swap_bytes', 'The swap of the machine, in bytes.', machine.swapBytes ?? 0),
  ]
}
