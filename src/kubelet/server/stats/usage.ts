/**
 * What the node, its pods and their containers use at one moment (L3): from the kernel's files on a real node, from the runtime on a simulated one.
 * Everything that is shown to metrics pipelines is made of this; it is kept for some seconds, however many ask.
 * Upstream: kubelet/stats/cri_stats_provider.go, cAdvisor's housekeeping (v1.36).
 */
import type { Clock } from '#base/clock'
import { type CgroupUsage, type CgroupUsageReader, detectCgroupUsage, type InterfaceUsage, interfacesOf } from '#host/cgroupUsage'
import { podCgroupPath, qosCgroupPath } from '../../core/cgroupResources.ts'
import type { FrozenPod } from '../../core/containers.ts'
import type { KubeletView } from '../../core/kubeletView.ts'

/** What a group uses, when that was, and how fast; the last is absent until there are two looks. */
export interface GroupUsage extends CgroupUsage {
  /** As a cgroup path. */
  readonly id: string
  readonly atMs: number
  readonly nanoCores: number | undefined
}

export interface ContainerUsage extends GroupUsage {
  /** The runtime's id. */
  readonly name: string
  readonly container: string
  readonly image: string
  readonly startedAtMs: number | undefined
}

export interface PodUsage {
  readonly pod: FrozenPod
  readonly uid: string
  readonly group: GroupUsage
  readonly containers: readonly ContainerUsage[]
  /** The group that holds the pod's network. */
  readonly sandbox: GroupUsage | undefined
  /** Absent for pods in the node's network. */
  readonly network: readonly InterfaceUsage[] | undefined
}

export interface NodeUsage {
  readonly node: GroupUsage
  readonly network: readonly InterfaceUsage[]
  /** The usage of all pods together, then of the Burstable and BestEffort classes. Absent cgroups are left out. */
  readonly groups: readonly GroupUsage[]
  readonly pods: readonly PodUsage[]
}

/** A rate needs two samples; with less time between them it would be mostly noise. */
const minimumRateMs = 1000
const keptMs = 5000

type Rate = (id: string, atMs: number, cpuNs: number) => number | undefined

function createRates(): { rate: Rate; forgetOthers(): void } {
  const samples = new Map<string, { atMs: number; cpuNs: number; nanoCores: number | undefined; seen: boolean }>()
  return {
    rate(id, atMs, cpuNs) {
      const before = samples.get(id)
      if (before && atMs - before.atMs < minimumRateMs) {
        before.seen = true
        return before.nanoCores
      }
      const nanoCores = before ? Math.max(0, Math.round(((cpuNs - before.cpuNs) * 1000) / (atMs - before.atMs))) : undefined
      samples.set(id, { atMs, cpuNs, nanoCores, seen: true })
      return nanoCores
    },
    forgetOthers() {
      for (const [id, sample] of samples) {
        if (!sample.seen) samples.delete(id)
        sample.seen = false
      }
    },
  }
}

/** CPU time of containers that have ended: it stays part of the node's, whose counter never falls. */
function createEndedUsage(): { cpuNs(containers: readonly GroupUsage[]): number } {
  let last = new Map<string, number>()
  let endedNs = 0
  return {
    cpuNs(containers) {
      const now = new Map(containers.map(({ id, cpuNs }) => [id, cpuNs]))
      for (const [id, cpuNs] of last) if (!now.has(id)) endedNs += cpuNs
      last = now
      return endedNs
    },
  }
}

export interface UsageSource {
  now(): Promise<NodeUsage>
}

/** Those who ask within some seconds share an answer. */
export function createUsageSource(view: KubeletView, clock: Clock): UsageSource {
  const { rate, forgetOthers } = createRates()
  const ended = createEndedUsage()
  let reader: Promise<CgroupUsageReader> | undefined
  let last: { readonly untilMs: number; readonly usage: Promise<NodeUsage> } | undefined
  const take = async (): Promise<NodeUsage> => {
    const host = view.context()?.host
    if (!host) return simulatedUsage(view, clock.now(), rate, ended)
    reader ??= detectCgroupUsage()
    return realUsage(view, await reader, (path) => host.cgroups.children(path), clock, rate)
  }
  return {
    now() {
      if (last && last.untilMs > clock.now()) return last.usage
      const usage = take().finally(forgetOthers)
      const entry = { untilMs: clock.now() + keptMs, usage }
      last = entry
      usage.catch(() => {
        if (last === entry) last = undefined
      })
      return usage
    },
  }
}

type Children = (path: string) => Promise<string[]>

async function realUsage(view: KubeletView, reader: CgroupUsageReader, children: Children, clock: Clock, rate: Rate): Promise<NodeUsage> {
  const root = view.config.cgroupRoot
  const groupOf = (id: string): GroupUsage | undefined => {
    const usage = reader.usage(id)
    const atMs = clock.now()
    return usage && { ...usage, id, atMs, nanoCores: rate(id, atMs, usage.cpuNs) }
  }
  const pods: PodUsage[] = []
  for (const pod of view.pods()) {
    const uid = pod.metadata.uid ?? ''
    const id = podCgroupPath(root, pod)
    const group = groupOf(id)
    if (!group) continue
    const known = containersOf(view, pod)
    const inside = (await children(id)).flatMap((name) => {
      const usage = groupOf(`${id}/${name}`)
      return usage ? [{ name, usage }] : []
    })
    const sandbox = inside.find(({ name }) => !known.has(name))?.usage
    const process = sandbox && !pod.spec.hostNetwork ? reader.process(sandbox.id) : undefined
    pods.push({
      pod,
      uid,
      group,
      sandbox,
      containers: inside.flatMap(({ name, usage }) => {
        const container = known.get(name)
        return container ? [{ ...usage, ...container, name }] : []
      }),
      network: process === undefined ? undefined : interfacesOf(process),
    })
  }
  const groups = (['Guaranteed', 'Burstable', 'BestEffort'] as const).flatMap((qos) => groupOf(qosCgroupPath(root, qos)) ?? [])
  return { node: groupOf(root) ?? emptyGroup(root, clock.now()), network: interfacesOf('self'), groups, pods }
}

type KnownContainer = Pick<ContainerUsage, 'container' | 'image' | 'startedAtMs'>

/** Running ones, by the runtime's id. */
function containersOf(view: KubeletView, pod: FrozenPod): Map<string, KnownContainer> {
  const status = view.podStatus(pod.metadata.uid ?? '') ?? pod.status
  const all = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? []), ...(status?.ephemeralContainerStatuses ?? [])]
  return new Map(
    all.flatMap(({ name, image, containerID, state }) => {
      if (!containerID) return []
      const startedAtMs = state?.running?.startedAt ? Date.parse(state.running.startedAt) : undefined
      return [[containerID.slice(containerID.indexOf('://') + 3), { container: name, image, startedAtMs }] as const]
    }),
  )
}

const noFaults = { failures: 0, pageFaults: 0, majorPageFaults: 0, ownPageFaults: 0, ownMajorPageFaults: 0, activeFileBytes: 0, inactiveFileBytes: 0 }

function emptyGroup(id: string, atMs: number): GroupUsage {
  const memory = { usageBytes: 0, workingSetBytes: 0, rssBytes: 0, cacheBytes: 0, swapBytes: 0, mappedFileBytes: 0, kernelBytes: 0 }
  return {
    id,
    atMs,
    cpuNs: 0,
    cpuUserNs: 0,
    cpuSystemNs: 0,
    periods: 0,
    throttledPeriods: 0,
    throttledNs: 0,
    shares: 0,
    periodUs: 0,
    quotaUs: 0,
    memory: { ...memory, ...noFaults, maxUsageBytes: 0, limitBytes: 0, swapLimitBytes: 0, reservationBytes: 0 },
    processes: 0,
    maxProcesses: 0,
    oomKills: 0,
    burstPeriods: 0,
    burstNs: 0,
    devices: [],
    nanoCores: undefined,
  }
}

/** The sum of groups, as one. */
function sumOf(id: string, atMs: number, groups: readonly GroupUsage[]): GroupUsage {
  const sum = (read: (group: GroupUsage) => number) => groups.reduce((total, group) => total + read(group), 0)
  const empty = emptyGroup(id, atMs)
  return {
    ...empty,
    cpuNs: sum((group) => group.cpuNs),
    nanoCores: groups.length === 0 ? undefined : sum((group) => group.nanoCores ?? 0),
    memory: {
      ...empty.memory,
      usageBytes: sum(({ memory }) => memory.usageBytes),
      workingSetBytes: sum(({ memory }) => memory.workingSetBytes),
      rssBytes: sum(({ memory }) => memory.rssBytes),
      pageFaults: sum(({ memory }) => memory.pageFaults),
      majorPageFaults: sum(({ memory }) => memory.majorPageFaults),
    },
  }
}

async function simulatedUsage(view: KubeletView, nowMs: number, rate: Rate, ended: ReturnType<typeof createEndedUsage>): Promise<NodeUsage> {
  const stats = new Map((await view.runtime.listContainerStats()).map((entry) => [entry.attributes.id, entry]))
  const pods = view.pods().flatMap((pod): PodUsage[] => {
    const uid = pod.metadata.uid ?? ''
    const id = podCgroupPath('/', pod)
    const containers = [...containersOf(view, pod)].flatMap(([name, known]): ContainerUsage[] => {
      const { cpu, memory } = stats.get(name) ?? {}
      if (!cpu || !memory) return []
      const empty = emptyGroup(`${id}/${name}`, Math.round(cpu.timestamp / 1e6))
      const cpuNs = cpu.usageCoreNanoSeconds?.value ?? 0
      const workingSetBytes = memory.workingSetBytes?.value ?? 0
      const reported = { usageBytes: memory.usageBytes?.value ?? workingSetBytes, workingSetBytes, rssBytes: memory.rssBytes?.value ?? 0 }
      const nanoCores = cpu.usageNanoCores?.value ?? rate(empty.id, empty.atMs, cpuNs)
      return [{ ...empty, ...known, name, cpuNs, nanoCores, memory: { ...empty.memory, ...reported } }]
    })
    const group = sumOf(id, containers[0]?.atMs ?? nowMs, containers)
    return containers.length === 0 ? [] : [{ pod, uid, group, containers, sandbox: undefined, network: undefined }]
  })
  const groups = pods.map(({ group }) => group)
  // The containers tell when they were measured, which is later than the question was asked.
  const node = sumOf('/', groups[0]?.atMs ?? nowMs, groups)
  return {
    node: { ...node, cpuNs: node.cpuNs + ended.cpuNs(pods.flatMap(({ containers }) => containers)) },
    network: [],
    groups: [],
    pods,
  }
}
