/**
 * /metrics/cadvisor (L3, pure): containers, pods, their sandboxes and the node under cAdvisor's names and labels. A pod's network is counted at its
 * sandbox, as with containerd upstream. Upstream: google/cadvisor metrics/prometheus.go, prometheus_machine.go (as of v1.36).
 */
import type { InterfaceUsage } from '#host/cgroupUsage'
import type { MachineInfo } from '../../host.ts'
import { placesOf } from '../../resources/machineTopology.ts'
import { diskFamilies, type NodeDisks } from './cadvisorDisks.ts'
import { exposition, type Labels, type MetricFamily, type Sample, sorted } from './exposition.ts'
import type { GroupUsage, NodeUsage } from './usage.ts'

interface Row {
  readonly labels: Labels
  readonly usage: GroupUsage
  readonly startedAtMs?: number | undefined
  readonly network?: readonly InterfaceUsage[] | undefined
  /** The machine's own disks are told of with it. */
  readonly isNode?: boolean | undefined
}

const row = (usage: GroupUsage, labels: { container?: string; image?: string; name?: string; namespace?: string; pod?: string } = {}): Row => {
  const { container = '', image = '', name = '', namespace = '', pod = '' } = labels
  return { usage, labels: { container, id: usage.id, image, name, namespace, pod } }
}

function rowsOf({ node, network, groups, pods }: NodeUsage, pauseImage: string): Row[] {
  return [
    // Whatever group the node's pods are below, to those who ask the node is all there is.
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

type Definition = readonly [name: string, type: MetricFamily['type'], help: string, read: (row: Row) => number | undefined]

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
  ['container_cpu_cfs_burst_periods_total', 'counter', 'Number of periods when burst occurs.', throttled(({ burstPeriods }) => burstPeriods)],
  ['container_cpu_cfs_burst_seconds_total', 'counter', 'Total time duration the container has been bursted.', throttled(({ burstNs }) => seconds(burstNs))],
  ['container_cpu_cfs_periods_total', 'counter', 'Number of elapsed enforcement period intervals.', throttled(({ periods }) => periods)],
  ['container_cpu_cfs_throttled_periods_total', 'counter', 'Number of throttled period intervals.', throttled(({ throttledPeriods }) => throttledPeriods)],
  [
    'container_cpu_cfs_throttled_seconds_total',
    'counter',
    'Total time duration the container has been throttled.',
    throttled(({ throttledNs }) => seconds(throttledNs)),
  ],
  ['container_cpu_system_seconds_total', 'counter', 'Cumulative system cpu time consumed in seconds.', ({ usage }) => seconds(usage.cpuSystemNs)],
  ['container_cpu_user_seconds_total', 'counter', 'Cumulative user cpu time consumed in seconds.', ({ usage }) => seconds(usage.cpuUserNs)],
  ['container_last_seen', 'gauge', 'Last time a container was seen by the exporter', ({ usage }) => Math.floor(usage.atMs / 1000)],
  ['container_memory_cache', 'gauge', 'Number of bytes of page cache memory.', ({ usage }) => usage.memory.cacheBytes],
  ['container_memory_failcnt', 'counter', 'Number of memory usage hits limits', ({ usage }) => usage.memory.failures],
  ['container_memory_kernel_usage', 'gauge', 'Size of kernel memory allocated in bytes.', ({ usage }) => usage.memory.kernelBytes],
  ['container_memory_mapped_file', 'gauge', 'Size of memory mapped files in bytes.', ({ usage }) => usage.memory.mappedFileBytes],
  ['container_memory_max_usage_bytes', 'gauge', 'Maximum memory usage recorded in bytes', ({ usage }) => usage.memory.maxUsageBytes],
  ['container_memory_rss', 'gauge', 'Size of RSS in bytes.', ({ usage }) => usage.memory.rssBytes],
  ['container_memory_swap', 'gauge', 'Container swap usage in bytes.', ({ usage }) => usage.memory.swapBytes],
  ['container_memory_total_active_file_bytes', 'gauge', 'Current total active file in bytes.', ({ usage }) => usage.memory.activeFileBytes],
  ['container_memory_total_inactive_file_bytes', 'gauge', 'Current total inactive file in bytes.', ({ usage }) => usage.memory.inactiveFileBytes],
  [
    'container_memory_usage_bytes',
    'gauge',
    'Current memory usage in bytes, including all memory regardless of when it was accessed',
    ({ usage }) => usage.memory.usageBytes,
  ],
  ['container_memory_working_set_bytes', 'gauge', 'Current working set in bytes.', ({ usage }) => usage.memory.workingSetBytes],
  ['container_oom_events_total', 'counter', 'Count of out of memory events observed for the container', ({ usage }) => usage.oomKills],
  [
    'container_pressure_cpu_stalled_seconds_total',
    'counter',
    'Total time duration no tasks in the container could make progress due to CPU congestion.',
    stalled('cpu', 'full'),
  ],
  [
    'container_pressure_cpu_waiting_seconds_total',
    'counter',
    'Total time duration tasks in the container have waited due to CPU congestion.',
    stalled('cpu', 'some'),
  ],
  [
    'container_pressure_io_stalled_seconds_total',
    'counter',
    'Total time duration no tasks in the container could make progress due to IO congestion.',
    stalled('io', 'full'),
  ],
  [
    'container_pressure_io_waiting_seconds_total',
    'counter',
    'Total time duration tasks in the container have waited due to IO congestion.',
    stalled('io', 'some'),
  ],
  [
    'container_pressure_memory_stalled_seconds_total',
    'counter',
    'Total time duration no tasks in the container could make progress due to memory congestion.',
    stalled('memory', 'full'),
  ],
  [
    'container_pressure_memory_waiting_seconds_total',
    'counter',
    'Total time duration tasks in the container have waited due to memory congestion.',
    stalled('memory', 'some'),
  ],
  ['container_processes', 'gauge', 'Number of processes running inside the container.', ({ usage }) => usage.processes],
  ['container_spec_cpu_period', 'gauge', 'CPU period of the container.', ({ usage }) => usage.periodUs || undefined],
  ['container_spec_cpu_quota', 'gauge', 'CPU quota of the container.', ({ usage }) => usage.quotaUs || undefined],
  ['container_spec_cpu_shares', 'gauge', 'CPU share of the container.', ({ usage }) => usage.shares || undefined],
  ['container_spec_memory_limit_bytes', 'gauge', 'Memory limit for the container.', ({ usage }) => usage.memory.limitBytes],
  ['container_spec_memory_reservation_limit_bytes', 'gauge', 'Memory reservation limit for the container.', ({ usage }) => usage.memory.reservationBytes],
  ['container_spec_memory_swap_limit_bytes', 'gauge', 'Memory swap limit for the container.', ({ usage }) => usage.memory.swapLimitBytes],
  [
    'container_start_time_seconds',
    'gauge',
    'Start time of the container since unix epoch in seconds.',
    ({ startedAtMs }) => (startedAtMs === undefined ? undefined : startedAtMs / 1000),
  ],
  ['container_threads', 'gauge', 'Number of threads running inside the container', ({ usage }) => usage.processes],
  ['container_threads_max', 'gauge', 'Maximum number of threads allowed inside the container, infinity if value is zero', ({ usage }) => usage.maxProcesses],
]

const networkDefinitions: readonly (readonly [name: string, help: string, read: (one: InterfaceUsage) => number])[] = [
  ['container_network_receive_bytes_total', 'Cumulative count of bytes received', (one) => one.receivedBytes],
  ['container_network_receive_errors_total', 'Cumulative count of errors encountered while receiving', (one) => one.receiveErrors],
  ['container_network_receive_packets_dropped_total', 'Cumulative count of packets dropped while receiving', (one) => one.receiveDropped],
  ['container_network_receive_packets_total', 'Cumulative count of packets received', (one) => one.receivedPackets],
  ['container_network_transmit_bytes_total', 'Cumulative count of bytes transmitted', (one) => one.sentBytes],
  ['container_network_transmit_errors_total', 'Cumulative count of errors encountered while transmitting', (one) => one.sendErrors],
  ['container_network_transmit_packets_dropped_total', 'Cumulative count of packets dropped while transmitting', (one) => one.sendDropped],
  ['container_network_transmit_packets_total', 'Cumulative count of packets transmitted', (one) => one.sentPackets],
]

export interface CadvisorFacts {
  readonly machine: MachineInfo | undefined
  readonly pauseImage: string
  /** Absent on simulated nodes. */
  readonly disks?: NodeDisks | undefined
}

export function cadvisorMetricsText(usage: NodeUsage, { machine, pauseImage, disks }: CadvisorFacts): string {
  const rows = rowsOf(usage, pauseImage)
  const ofRows = definitions.map(([name, type, help, read]): MetricFamily => {
    const samples = rows.flatMap((one): Sample[] => {
      const value = read(one)
      return value === undefined ? [] : [{ labels: one.labels, value, atMs: one.usage.atMs }]
    })
    return { name, type, help, samples }
  })
  const ofNetworks = networkDefinitions.map(([name, help, read]): MetricFamily => {
    const samples = rows.flatMap(({ labels, usage: { atMs }, network }) =>
      (network ?? []).map((one) => ({ labels: sorted({ ...labels, interface: one.name }), value: read(one), atMs })),
    )
    return { name, type: 'counter', help, samples }
  })
  const ofDisks = disks ? diskFamilies(rows, disks) : []
  const families = [...ofRows, ...ofNetworks, ...ofDisks, cpuUsage(rows), memoryFailures(rows), ...machineFamilies(machine)]
  return exposition(families.sort((a, b) => (a.name < b.name ? -1 : 1)))
}

function cpuUsage(rows: readonly Row[]): MetricFamily {
  const samples = rows.map(({ labels, usage }) => ({ labels: sorted({ ...labels, cpu: 'total' }), value: seconds(usage.cpuNs), atMs: usage.atMs }))
  return { name: 'container_cpu_usage_seconds_total', type: 'counter', help: 'Cumulative cpu time consumed in seconds.', samples }
}

function memoryFailures(rows: readonly Row[]): MetricFamily {
  const samples = rows.flatMap(({ labels, usage: { memory, atMs } }) => {
    const sample = (failure_type: string, scope: string, value: number) => ({ labels: sorted({ ...labels, failure_type, scope }), value, atMs })
    return [
      sample('pgfault', 'container', memory.ownPageFaults),
      sample('pgmajfault', 'container', memory.ownMajorPageFaults),
      sample('pgfault', 'hierarchy', memory.pageFaults),
      sample('pgmajfault', 'hierarchy', memory.majorPageFaults),
    ]
  })
  return { name: 'container_memory_failures_total', type: 'counter', help: 'Cumulative count of memory allocation failures.', samples }
}

function machineFamilies(machine: MachineInfo | undefined): MetricFamily[] {
  const scraped = (name: string, what: string): MetricFamily => ({
    name,
    type: 'gauge',
    help: `1 if there was an error while getting ${what} metrics, 0 otherwise.`,
    samples: [{ value: 0 }],
  })
  const always = [scraped('container_scrape_error', 'container'), scraped('machine_scrape_error', 'machine')]
  if (!machine) return always
  const labels = { boot_id: machine.bootID, machine_id: machine.machineID, system_uuid: machine.systemUUID }
  const gauge = (name: string, help: string, value: number): MetricFamily => ({ name, type: 'gauge', help, samples: [{ labels, value }] })
  const { topology } = machine
  const version = { cadvisorRevision: '', cadvisorVersion: '', dockerVersion: '', kernelVersion: machine.kernelVersion, osVersion: machine.osImage }
  return [
    ...always,
    {
      name: 'cadvisor_version_info',
      type: 'gauge',
      help: "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.",
      samples: [{ labels: version, value: 1 }],
    },
    gauge('machine_cpu_cores', 'Number of logical CPU cores.', machine.cpus),
    gauge('machine_cpu_physical_cores', 'Number of physical CPU cores.', topology ? placesOf(topology, 'core').length : machine.cpus),
    gauge('machine_cpu_sockets', 'Number of CPU sockets.', topology ? placesOf(topology, 'socket').length : 1),
    gauge('machine_memory_bytes', 'Amount of memory installed on the machine.', machine.memoryBytes),
    gauge('machine_swap_bytes', 'Amount of swap memory available on the machine.', machine.swapBytes ?? 0),
  ]
}
