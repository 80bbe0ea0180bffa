/** /stats/summary and /metrics/resource (L3): what metrics pipelines read. Upstream: kubelet/server/stats, kubelet/metrics/collectors/resource_metrics.go (v1.36). */
import { formatTime } from '#base/time'
import type { RuntimeContainerStats } from '#grpc/criTypes'
import type { KubeletView } from '../kubelet.ts'
import { labelKeys } from '../runtime/labels.ts'

interface Sample {
  readonly atNs: number
  readonly usageNs: number
  readonly nanoCores: number | undefined
}

export interface StatsProvider {
  /** The Summary of the v1alpha1 stats API. */
  summary(): Promise<unknown>
  /** The text of /metrics/resource. */
  resourceMetrics(): Promise<string>
}

interface ContainerUsage {
  readonly id: string
  readonly namespace: string
  readonly pod: string
  readonly uid: string
  readonly container: string
  readonly atMs: number
  readonly cpuNs: number
  readonly nanoCores: number | undefined
  readonly memory: NonNullable<RuntimeContainerStats['memory']>
  readonly writableLayerBytes: number
}

/** A rate needs two samples; those closer than this say more about noise. */
const minimumRateNs = 1e9

export function createStatsProvider(view: KubeletView, nowMs: () => number): StatsProvider {
  const samples = new Map<string, Sample>()

  const rate = (id: string, atNs: number, usageNs: number, told: number | undefined): number | undefined => {
    if (told !== undefined) return told
    const before = samples.get(id)
    if (before && atNs - before.atNs < minimumRateNs) return before.nanoCores
    const nanoCores = before ? Math.max(0, Math.round(((usageNs - before.usageNs) * 1e9) / (atNs - before.atNs))) : undefined
    samples.set(id, { atNs, usageNs, nanoCores })
    return nanoCores
  }

  const usages = async (): Promise<ContainerUsage[]> => {
    const stats = await view.runtime.listContainerStats()
    const seen = new Set(stats.map((entry) => entry.attributes.id))
    for (const id of samples.keys()) if (!seen.has(id) && id !== '/') samples.delete(id)
    return stats.flatMap(({ attributes, cpu, memory, writableLayer }): ContainerUsage[] => {
      if (!cpu || !memory) return []
      const cpuNs = cpu.usageCoreNanoSeconds?.value ?? 0
      return [
        {
          id: attributes.id,
          namespace: attributes.labels[labelKeys.podNamespace] ?? '',
          pod: attributes.labels[labelKeys.podName] ?? '',
          uid: attributes.labels[labelKeys.podUid] ?? '',
          container: attributes.labels[labelKeys.containerName] ?? attributes.metadata.name,
          atMs: Math.floor(cpu.timestamp / 1e6),
          cpuNs,
          nanoCores: rate(attributes.id, cpu.timestamp, cpuNs, cpu.usageNanoCores?.value),
          memory,
          writableLayerBytes: writableLayer?.usedBytes?.value ?? 0,
        },
      ]
    })
  }

  const nodeUsage = async (containers: readonly ContainerUsage[]) => {
    const context = view.context()
    const own = await context?.host?.cgroups.stats(view.config.cgroupRoot)
    const sum = (read: (usage: ContainerUsage) => number) => containers.reduce((total, usage) => total + read(usage), 0)
    const cpuNs = own?.cpuUsageNanoSeconds ?? sum((usage) => usage.cpuNs)
    const atMs = nowMs()
    const memoryBytes = own?.memoryWorkingSetBytes ?? sum((usage) => usage.memory.workingSetBytes?.value ?? 0)
    const told = own ? undefined : sum((usage) => usage.nanoCores ?? 0)
    return { atMs, cpuNs, memoryBytes, nanoCores: rate('/', atMs * 1e6, cpuNs, told), capacity: context?.machineInfo.memoryBytes ?? 0 }
  }

  return {
    summary: async () => {
      const containers = await usages()
      const node = await nodeUsage(containers)
      const context = view.context()
      const filesystem = await context?.host?.filesystem(view.config.rootDirectory).catch(() => undefined)
      const time = formatTime(node.atMs)
      return {
        node: {
          nodeName: view.config.nodeName,
          cpu: { time, usageNanoCores: node.nanoCores, usageCoreNanoSeconds: node.cpuNs },
          memory: { time, availableBytes: Math.max(0, node.capacity - node.memoryBytes), usageBytes: node.memoryBytes, workingSetBytes: node.memoryBytes },
          ...(filesystem
            ? {
                fs: {
                  time,
                  availableBytes: filesystem.availableBytes,
                  capacityBytes: filesystem.capacityBytes,
                  usedBytes: filesystem.capacityBytes - filesystem.availableBytes,
                  inodesFree: filesystem.inodesFree,
                  inodes: filesystem.inodes,
                  inodesUsed: filesystem.inodes - filesystem.inodesFree,
                },
              }
            : {}),
        },
        pods: podSummaries(view, containers),
      }
    },
    resourceMetrics: async () => {
      const containers = await usages()
      return resourceMetricsText(view, containers, await nodeUsage(containers))
    },
  }
}

function podSummaries(view: KubeletView, containers: readonly ContainerUsage[]): unknown[] {
  return [...groupByPod(containers)].map(([uid, usages]) => {
    const [first] = usages
    const time = formatTime(first?.atMs ?? 0)
    const sum = (read: (usage: ContainerUsage) => number) => usages.reduce((total, usage) => total + read(usage), 0)
    const status = view.podStatus(uid)
    return {
      podRef: { name: first?.pod, namespace: first?.namespace, uid },
      startTime: status?.startTime,
      containers: usages.map((usage) => ({
        name: usage.container,
        startTime: status?.containerStatuses?.find((container) => container.name === usage.container)?.state?.running?.startedAt ?? time,
        cpu: { time, usageNanoCores: usage.nanoCores, usageCoreNanoSeconds: usage.cpuNs },
        memory: memorySummary(time, usage.memory),
        rootfs: { time, usedBytes: usage.writableLayerBytes },
      })),
      cpu: { time, usageNanoCores: sum((usage) => usage.nanoCores ?? 0), usageCoreNanoSeconds: sum((usage) => usage.cpuNs) },
      memory: {
        time,
        usageBytes: sum((usage) => usage.memory.usageBytes?.value ?? 0),
        workingSetBytes: sum((usage) => usage.memory.workingSetBytes?.value ?? 0),
        rssBytes: sum((usage) => usage.memory.rssBytes?.value ?? 0),
      },
    }
  })
}

function groupByPod(containers: readonly ContainerUsage[]): Map<string, ContainerUsage[]> {
  const byPod = new Map<string, ContainerUsage[]>()
  for (const usage of containers) byPod.set(usage.uid, [...(byPod.get(usage.uid) ?? []), usage])
  return byPod
}

function memorySummary(time: string, memory: ContainerUsage['memory']) {
  return {
    time,
    usageBytes: memory.usageBytes?.value ?? memory.workingSetBytes?.value ?? 0,
    workingSetBytes: memory.workingSetBytes?.value ?? 0,
    rssBytes: memory.rssBytes?.value ?? 0,
    pageFaults: memory.pageFaults?.value ?? 0,
    majorPageFaults: memory.majorPageFaults?.value ?? 0,
  }
}

function resourceMetricsText(
  view: KubeletView,
  containers: readonly ContainerUsage[],
  node: { readonly atMs: number; readonly cpuNs: number; readonly memoryBytes: number },
): string {
  const lines: string[] = []
  const family = (name: string, type: string, help: string, values: readonly (readonly [labels: string, value: number, atMs?: number])[]) => {
    lines.push(`# HELP ${name} [STABLE] ${help}`, `# TYPE ${name} ${type}`)
    for (const [labels, value, atMs] of values) lines.push(`${name}${labels} ${value}${atMs === undefined ? '' : ` ${atMs}`}`)
  }
  const ofContainer = (usage: ContainerUsage) => `{container="${usage.container}",namespace="${usage.namespace}",pod="${usage.pod}"}`
  const started = (usage: ContainerUsage) => {
    const status = view.podStatus(usage.uid)?.containerStatuses?.find((container) => container.name === usage.container)
    return Date.parse(status?.state?.running?.startedAt ?? '') / 1000
  }
  const seconds = (ns: number) => ns / 1e9
  const pods = [...groupByPod(containers).values()].flatMap((usages) => {
    const [first] = usages
    return first ? [{ labels: `{namespace="${first.namespace}",pod="${first.pod}"}`, usages, atMs: first.atMs }] : []
  })
  const sum = (usages: readonly ContainerUsage[], read: (usage: ContainerUsage) => number) => usages.reduce((total, usage) => total + read(usage), 0)
  const workingSet = (usage: ContainerUsage) => usage.memory.workingSetBytes?.value ?? 0
  family(
    'container_cpu_usage_seconds_total',
    'counter',
    'Cumulative cpu time consumed by the container in core-seconds',
    containers.map((usage) => [ofContainer(usage), seconds(usage.cpuNs), usage.atMs]),
  )
  family(
    'container_memory_working_set_bytes',
    'gauge',
    'Current working set of the container in bytes',
    containers.map((usage) => [ofContainer(usage), workingSet(usage), usage.atMs]),
  )
  family(
    'container_start_time_seconds',
    'gauge',
    'Start time of the container since unix epoch in seconds',
    containers.filter((usage) => Number.isFinite(started(usage))).map((usage) => [ofContainer(usage), started(usage)]),
  )
  family('node_cpu_usage_seconds_total', 'counter', 'Cumulative cpu time consumed by the node in core-seconds', [['', seconds(node.cpuNs), node.atMs]])
  family('node_memory_working_set_bytes', 'gauge', 'Current working set of the node in bytes', [['', node.memoryBytes, node.atMs]])
  family(
    'pod_cpu_usage_seconds_total',
    'counter',
    'Cumulative cpu time consumed by the pod in core-seconds',
    pods.map(({ labels, usages, atMs }) => [labels, seconds(sum(usages, (usage) => usage.cpuNs)), atMs]),
  )
  family(
    'pod_memory_working_set_bytes',
    'gauge',
    'Current working set of the pod in bytes',
    pods.map(({ labels, usages, atMs }) => [labels, sum(usages, workingSet), atMs]),
  )
  family('resource_scrape_error', 'gauge', '1 if there was an error while getting container metrics, 0 otherwise', [['', 0]])
  return `${lines.join('\n')}\n`
}
