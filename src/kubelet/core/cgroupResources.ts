/**
 * Converts requests and limits to the kernel's units (L3, pure): shares, quota, OOM score, QoS class and the cgroup each pod lives in.
 * Upstream: kubelet/cm/helpers_linux.go, kubelet/qos/policy.go, component-helpers/resource (v1.36).
 */
import type { ResourceRequirements } from '#api/gen/types/core.v1'
import { podLimits, podRequests, qosClass } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { least } from '#base/extremes'
import type { LinuxContainerResources } from '#grpc/criTypes'
import { type CgroupLimits, hugepageFileSize } from '#host/cgroups'
import { type FrozenContainer, type FrozenPod, isRestartableInitContainer } from './containers.ts'
import { hugepageResource } from './machineTopology.ts'
import { type MemoryQosOptions, memoryQos, podMemoryProtection } from './memoryQos.ts'
import { milliUnits, wholeUnits } from './quantities.ts'
import { type SwapOptions, swapLimits } from './swap.ts'

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort'

const minShares = 2
const maxShares = 262_144
const minQuotaUs = 1000

export function milliCpuToShares(milliCpu: number): number {
  return milliCpu === 0 ? minShares : Math.min(maxShares, Math.max(minShares, Math.floor((milliCpu * 1024) / 1000)))
}

/** Whether limits of CPU are held, and over which time. */
export interface CpuQuotaOptions {
  readonly cpuCFSQuota: boolean
  readonly cpuCFSQuotaPeriodMs: number
}

const periodUsOf = ({ cpuCFSQuotaPeriodMs }: CpuQuotaOptions) => Math.round(cpuCFSQuotaPeriodMs * 1000)

/** 0 means no quota. */
export function milliCpuToQuota(milliCpu: number, periodUs: number): number {
  return milliCpu === 0 ? 0 : Math.max(minQuotaUs, Math.floor((milliCpu * periodUs) / 1000))
}

/** What the API server computed, or the same computation for pods that never saw it. */
export function podQosClass(pod: FrozenPod): QosClass {
  return (pod.status?.qosClass as QosClass | undefined) ?? qosClass(pod)
}

/** The larger of all regular containers with sidecars together, and each init step with the sidecars before it. Undefined: some container has no such limit. */
function podTotal(pod: FrozenPod, value: (container: FrozenContainer) => number | undefined): number | undefined {
  let sidecars = 0
  let peak = 0
  for (const container of pod.spec.initContainers ?? []) {
    const own = value(container)
    if (own === undefined) return undefined
    if (isRestartableInitContainer(container)) sidecars += own
    peak = Math.max(peak, isRestartableInitContainer(container) ? sidecars : sidecars + own)
  }
  let total = sidecars
  for (const container of pod.spec.containers) {
    const own = value(container)
    if (own === undefined) return undefined
    total += own
  }
  return Math.max(total, peak)
}

export interface PodCgroupOptions extends CpuQuotaOptions {
  readonly podPidsLimit: number
  readonly hugepageSizes?: readonly number[] | undefined
  /** Set where memory is protected: cgroup v2 with feature gate MemoryQoS. */
  readonly memoryQos?: MemoryQosOptions | undefined
}

/** The pod's cgroup: an empty limit on any container leaves the pod unlimited, unless the pod sets its own. */
export function podCgroupLimits(pod: FrozenPod, options: PodCgroupOptions): CgroupLimits {
  const overhead = pod.spec.overhead ?? {}
  const own = pod.spec.resources
  const requestMilli =
    own?.requests?.cpu !== undefined
      ? milliUnits(own.requests.cpu)
      : (podTotal(pod, ({ resources }) => milliUnits(resources?.requests?.cpu ?? resources?.limits?.cpu)) ?? 0)
  const positive = (read: number) => (read > 0 ? read : undefined)
  const cpuLimit = own?.limits?.cpu !== undefined ? milliUnits(own.limits.cpu) : podTotal(pod, ({ resources }) => positive(milliUnits(resources?.limits?.cpu)))
  const memoryLimit =
    own?.limits?.memory !== undefined ? wholeUnits(own.limits.memory) : podTotal(pod, ({ resources }) => positive(wholeUnits(resources?.limits?.memory)))
  const periodUs = periodUsOf(options)
  return {
    cpuShares: milliCpuToShares(requestMilli + milliUnits(overhead.cpu)),
    ...(cpuLimit && options.cpuCFSQuota ? { cpuQuotaUs: milliCpuToQuota(cpuLimit + milliUnits(overhead.cpu), periodUs), cpuPeriodUs: periodUs } : {}),
    ...(memoryLimit ? { memoryLimitBytes: memoryLimit + wholeUnits(overhead.memory) } : {}),
    ...(options.podPidsLimit > 0 ? { pidsLimit: options.podPidsLimit } : {}),
    ...(options.hugepageSizes?.length ? { hugepageLimits: podHugepageLimits(pod, options.hugepageSizes) } : {}),
    ...(options.memoryQos ? podMemoryProtection(podQosClass(pod), podRequests(pod).memory ?? 0, options.memoryQos) : {}),
  }
}

/** Huge pages of sizes that the pod does not request are limited to 0. */
function podHugepageLimits(pod: FrozenPod, sizes: readonly number[]): Record<string, number> {
  const limitOf = (name: string) =>
    pod.spec.resources?.limits?.[name] !== undefined
      ? wholeUnits(pod.spec.resources.limits[name])
      : (podTotal(pod, ({ resources }) => wholeUnits(resources?.limits?.[name])) ?? 0)
  return Object.fromEntries(sizes.map((size) => [hugepageFileSize(size), limitOf(hugepageResource(size))]))
}

/** Guaranteed pods sit directly below kubepods; the other classes have a group of their own. */
export function podCgroupPath(cgroupRoot: string, pod: FrozenPod): string {
  return `${qosCgroupPath(cgroupRoot, podQosClass(pod))}/pod${pod.metadata.uid}`
}

export function qosCgroupPath(cgroupRoot: string, qos: QosClass): string {
  const kubepods = `${cgroupRoot === '/' ? '' : cgroupRoot}/kubepods`
  return qos === 'Guaranteed' ? kubepods : `${kubepods}/${qos.toLowerCase()}`
}

const guaranteedScore = -997
const bestEffortScore = 1000

/** -997 for Guaranteed pods and those that the node needs, 1000 for BestEffort, between by the share of memory asked for. */
export function oomScoreAdj(pod: FrozenPod, container: FrozenContainer, memoryCapacityBytes: number): number {
  const qos = podQosClass(pod)
  // Static pods too: what the node needs must outlive the others.
  if ((pod.spec.priority ?? 0) >= 2_000_001_000 || qos === 'Guaranteed') return guaranteedScore
  if (qos === 'BestEffort') return bestEffortScore
  const memoryOf = ({ resources }: FrozenContainer) => wholeUnits(resources?.requests?.memory)
  const shared = memoryForAll(pod)
  const score = (requestBytes: number) => bestEffortScore - Math.trunc((1000 * (requestBytes + shared)) / memoryCapacityBytes)
  const own = score(memoryOf(container))
  const isSidecar = isRestartableInitContainer(container) && pod.spec.initContainers?.some(({ name }) => name === container.name)
  // A sidecar must not go before those that it serves.
  const adjustment = isSidecar ? Math.min(own, score(least(pod.spec.containers.map(memoryOf)))) : own
  // Above Guaranteed's, below BestEffort's.
  if (adjustment < bestEffortScore + guaranteedScore) return bestEffortScore + guaranteedScore
  return adjustment === bestEffortScore ? bestEffortScore - 1 : adjustment
}

/** What a pod asks for as a whole and none of its containers does: each one's part of it, in bytes. */
function memoryForAll(pod: FrozenPod): number {
  const whole = wholeUnits(pod.spec.resources?.requests?.memory)
  if (whole === 0) return 0
  const ofContainers = podTotal(pod, ({ resources }) => wholeUnits(resources?.requests?.memory)) ?? 0
  return Math.trunc((whole - ofContainers) / (pod.spec.containers.length + (pod.spec.initContainers?.length ?? 0)))
}

/** A container without a CPU or memory limit inherits the pod's. */
export function effectiveResources(pod: FrozenPod, container: FrozenContainer): Frozen<ResourceRequirements> {
  const own = container.resources ?? {}
  const ofPod = pod.spec.resources?.limits ?? {}
  const missing = (['cpu', 'memory'] as const).filter((name) => milliUnits(own.limits?.[name]) === 0 && milliUnits(ofPod[name]) > 0)
  if (missing.length === 0) return own
  return { ...own, limits: { ...own.limits, ...Object.fromEntries(missing.map((name) => [name, ofPod[name] ?? '0'])) } }
}

export interface ContainerResourceOptions extends CpuQuotaOptions {
  readonly memoryCapacityBytes: number
  readonly hugepageSizes?: readonly number[] | undefined
  /** Set where memory is protected and throttled: cgroup v2 with feature gate MemoryQoS. */
  readonly memoryQos?: MemoryQosOptions | undefined
  /** The kernel ends all processes of a container that exceeds its memory: cgroup v2, unless singleProcessOOMKill is set. */
  readonly endsWholeContainer?: boolean | undefined
  /** Set where the kernel can limit swap. */
  readonly swap?: SwapOptions | undefined
}

/** The container's resources in the request to the runtime. */
export function containerResources(pod: FrozenPod, container: FrozenContainer, options: ContainerResourceOptions): LinuxContainerResources {
  const { requests, limits } = effectiveResources(pod, container)
  const cpuLimit = milliUnits(limits?.cpu)
  const memoryLimit = wholeUnits(limits?.memory)
  const periodUs = periodUsOf(options)
  return {
    cpuShares: milliCpuToShares(requests?.cpu !== undefined ? milliUnits(requests.cpu) : cpuLimit),
    cpuPeriod: periodUs,
    // Without a limit the quota is lifted, not left at whatever it was.
    cpuQuota: options.cpuCFSQuota && cpuLimit > 0 ? milliCpuToQuota(cpuLimit, periodUs) : -1,
    ...(memoryLimit > 0 ? { memoryLimitInBytes: memoryLimit } : {}),
    ...containerHugepages({ ...pod.spec.resources?.limits, ...limits }, options.hugepageSizes ?? []),
    ...kernelLimits(pod, container, memoryLimit, options),
    oomScoreAdj: oomScoreAdj(pod, container, options.memoryCapacityBytes),
  }
}

/** Limits that a runtime passes to the kernel unchanged, and those of swap. */
function kernelLimits(
  pod: FrozenPod,
  container: FrozenContainer,
  memoryLimitBytes: number,
  { memoryQos: memory, endsWholeContainer, swap }: ContainerResourceOptions,
): Pick<LinuxContainerResources, 'unified' | 'memorySwapLimitInBytes'> {
  const qos = podQosClass(pod)
  const { requests, limits } = container.resources ?? {}
  const { unified: swapFiles, ...swapLimit } = swap ? swapLimits(pod, qos, container, memoryLimitBytes, swap) : {}
  const unified = {
    ...(endsWholeContainer ? { 'memory.oom.group': '1' } : {}),
    ...swapFiles,
    ...(memory ? memoryQos(qos, wholeUnits(requests?.memory), wholeUnits(limits?.memory), memory) : {}),
  }
  return { ...swapLimit, ...(Object.keys(unified).length > 0 ? { unified } : {}) }
}

/** Only of containers that use huge pages, of their own limits or their pod's: the pod's own group forbids them to all others. */
function containerHugepages(limits: Readonly<Record<string, string>>, sizes: readonly number[]): Pick<LinuxContainerResources, 'hugepageLimits'> {
  if (!Object.keys(limits).some((name) => name.startsWith('hugepages-'))) return {}
  return { hugepageLimits: sizes.map((size) => ({ pageSize: hugepageFileSize(size), limit: wholeUnits(limits[hugepageResource(size)]) })) }
}

/** The pod's resources in the request for a sandbox, for runtimes that size a virtual machine: the pod without overhead, and the overhead. */
export function sandboxResources(pod: FrozenPod, options: CpuQuotaOptions): { overhead?: LinuxContainerResources; resources?: LinuxContainerResources } {
  const periodUs = periodUsOf(options)
  const linux = (requestMilli: number, limitMilli: number, memoryBytes: number): LinuxContainerResources => ({
    cpuShares: milliCpuToShares(requestMilli),
    cpuPeriod: periodUs,
    ...(options.cpuCFSQuota && limitMilli > 0 ? { cpuQuota: milliCpuToQuota(limitMilli, periodUs) } : {}),
    ...(memoryBytes > 0 ? { memoryLimitInBytes: memoryBytes } : {}),
  })
  const { overhead } = pod.spec
  const [requests, limits] = [podRequests(pod, { excludeOverhead: true }), podLimits(pod, { excludeOverhead: true })]
  return {
    resources: linux(requests.cpu ?? 0, limits.cpu ?? 0, limits.memory ?? 0),
    ...(overhead ? { overhead: linux(milliUnits(overhead.cpu), milliUnits(overhead.cpu), wholeUnits(overhead.memory)) } : {}),
  }
}
