/**
 * The cgroups above the pods' own (L3): kubepods with what the node gives to pods, a group per QoS class below it, and the limits of what is reserved for
 * others. The numbers are pure; setting them is the edge. Upstream: kubelet/cm/node_container_manager_linux.go, qos_container_manager_linux.go (v1.36).
 */
import { amountsOf, podRequests } from '#api/helpers/podResources'
import { messageOf } from '#base/messageOf'
import { type CgroupLimits, hugepageFileSize } from '#host/cgroups'
import { milliCpuToShares, podCgroupPath, podQosClass, qosCgroupPath } from '../core/cgroupResources.ts'
import { type FrozenPod, isTerminalPhase } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { hugepageBytes, type MachineTopology } from '../core/machineTopology.ts'
import { classMemoryProtection, type MemoryQosOptions } from '../core/memoryQos.ts'
import { milliUnits, quantity, wholeUnits } from '../core/quantities.ts'
import { gateEnabled, type ResourcesConfig } from '../core/resourceConfig.ts'
import { cgroupMetrics, memoryQosMetrics } from './managerMetrics.ts'
import { memoryQosOptions } from './resourceOptions.ts'

export interface CgroupTree {
  /** Makes the groups. @throws Error when this node may not run on such a host, or a group that is to be limited is not there */
  setUp(): Promise<void>
  /** Makes the pod's own group, or changes its limits; the class above it follows. */
  limitPod(pod: FrozenPod, limits: CgroupLimits): Promise<void>
  /** What the pod's group was last limited to by this kubelet. */
  podLimits(podUid: string): CgroupLimits | undefined
  /** Removes the pod's group with everything below it. */
  removePod(pod: FrozenPod): Promise<void>
  /** Keeps the limits of the QoS classes up to date as pods are added and removed, until aborted. */
  run(signal: AbortSignal): Promise<void>
}

/** So large that it is none: what upstream writes for huge pages of groups that are not limited in them. */
export const unlimitedHugepages = 2 ** 62
const updatePeriodMs = 60_000

/** The limits of all pods together: the node's capacity, less the reservations that enforceNodeAllocatable enforces. Eviction keeps its own threshold free. */
export function kubepodsLimits(
  machine: { readonly cpus: number; readonly memoryBytes: number; readonly topology?: MachineTopology | undefined },
  config: ResourcesConfig,
): CgroupLimits {
  const enforced = config.enforceNodeAllocatable.includes('pods')
  const reserved = (read: (text: string | undefined) => number, name: string) =>
    enforced ? read(config.systemReserved[name]) + read(config.kubeReserved[name]) : 0
  const pids = reserved(wholeUnits, 'pid')
  return {
    cpuShares: milliCpuToShares(machine.cpus * 1000 - reserved(milliUnits, 'cpu')),
    memoryLimitBytes: machine.memoryBytes - reserved(quantity, 'memory'),
    ...(pids > 0 ? { pidsLimit: maxPids - pids } : {}),
    ...(machine.topology
      ? { hugepageLimits: Object.fromEntries([...hugepageBytes(machine.topology)].map(([size, bytes]) => [hugepageFileSize(size), bytes])) }
      : {}),
  }
}

/** Linux's own limit on 64-bit machines. */
const maxPids = 4_194_304

/** The limits of what is reserved for the system or for Kubernetes; `compressible`: of CPUs alone; `protectsMemory`: feature gate MemoryQoS. */
export function reservedLimits(reserved: Readonly<Record<string, string>>, compressible: boolean, protectsMemory = false): CgroupLimits {
  const memoryBytes = reserved.memory === undefined || compressible ? undefined : wholeUnits(reserved.memory)
  return {
    ...(reserved.cpu === undefined ? {} : { cpuShares: milliCpuToShares(milliUnits(reserved.cpu)) }),
    ...(memoryBytes === undefined ? {} : { memoryLimitBytes: memoryBytes, ...(protectsMemory ? { memoryMinBytes: memoryBytes } : {}) }),
    ...(reserved.pid === undefined || compressible ? {} : { pidsLimit: wholeUnits(reserved.pid) }),
  }
}

export interface QosLimits {
  /** Only with feature gate MemoryQoS: the group of Guaranteed pods holds those of the other classes, too. */
  readonly guaranteed?: CgroupLimits | undefined
  readonly burstable: CgroupLimits
  readonly bestEffort: CgroupLimits
}

/** Burstable pods get CPU by what they ask for together, BestEffort ones the least there is; memory is kept back for higher classes if so configured. */
export function qosLimits(
  pods: readonly FrozenPod[],
  allocatable: Readonly<Record<string, string>>,
  config: Pick<ResourcesConfig, 'qosReserved' | 'featureGates'>,
  memory?: MemoryQosOptions,
): QosLimits {
  const active = pods.filter((pod) => !isTerminalPhase(pod.status?.phase))
  const requested = (qos: string, name: string) => active.reduce((sum, pod) => (podQosClass(pod) === qos ? sum + (podRequests(pod)[name] ?? 0) : sum), 0)
  const requests = { guaranteed: requested('Guaranteed', 'memory'), burstable: requested('Burstable', 'memory') }
  const protection = memory && classMemoryProtection(requests, memory)
  const shares = {
    ...(protection ? { guaranteed: protection.guaranteed } : {}),
    burstable: { cpuShares: milliCpuToShares(requested('Burstable', 'cpu')), ...protection?.burstable },
    bestEffort: { cpuShares: milliCpuToShares(0) },
  }
  const percent = gateEnabled(config, 'QOSReserved') ? /^(\d+)%$/.exec(config.qosReserved.memory ?? '')?.[1] : undefined
  if (percent === undefined) return shares
  const total = amountsOf(allocatable).memory ?? 0
  const kept = (bytes: number) => Math.trunc((bytes * Number(percent)) / 100)
  const burstable = total - kept(requests.guaranteed)
  return {
    ...shares,
    burstable: { ...shares.burstable, memoryLimitBytes: burstable },
    bestEffort: { ...shares.bestEffort, memoryLimitBytes: burstable - kept(requests.burstable) },
  }
}

/** @param pods every pod of the node */
export function createCgroupTree(context: KubeletContext, pods: () => readonly FrozenPod[]): CgroupTree {
  const { host, config, clock, log } = context
  const event = (type: 'Normal' | 'Warning', reason: string, message: string) =>
    context.recorder.event({ kind: 'Node', name: config.nodeName, uid: config.nodeName }, type, reason, message)
  const path = (qos: 'Guaranteed' | 'Burstable' | 'BestEffort') => qosCgroupPath(config.cgroupRoot, qos)
  const memory = () => memoryQosOptions(context)
  const classes = () => qosLimits(pods(), context.allocatable, config, memory())
  const timed = cgroupMetrics(context, host?.cgroups.version)
  const memoryGauges = memoryQosMetrics(context.metrics, gateEnabled(config, 'MemoryQoS'))
  let applied = ''

  const update = async (): Promise<void> => {
    const limits = classes()
    const wanted = JSON.stringify(limits)
    if (!host || wanted === applied) return
    const { guaranteed } = limits
    if (guaranteed) await timed('update', () => host.cgroups.ensure(path('Guaranteed'), guaranteed))
    await timed('update', () => host.cgroups.ensure(path('Burstable'), limits.burstable))
    await timed('update', () => host.cgroups.ensure(path('BestEffort'), limits.bestEffort))
    memoryGauges(limits)
    applied = wanted
  }

  const limitReserved = async (part: 'system' | 'kube'): Promise<void> => {
    const compressible = config.enforceNodeAllocatable.includes(`${part}-reserved-compressible`)
    if (!host || !(compressible || config.enforceNodeAllocatable.includes(`${part}-reserved`))) return
    const [cgroup, reserved] = part === 'system' ? [config.systemReservedCgroup, config.systemReserved] : [config.kubeReservedCgroup, config.kubeReserved]
    const what = `${part === 'system' ? 'System' : 'Kube'} Reserved${compressible ? ' Compressible' : ''}`
    try {
      if (!(await host.cgroups.exists(cgroup))) throw new Error(`["${cgroup}"] does not exist`)
      await host.cgroups.ensure(cgroup, reservedLimits(reserved, compressible, gateEnabled(config, 'MemoryQoS')))
    } catch (error) {
      const message = `Failed to enforce ${what} Cgroup Limits on "${cgroup}": ${messageOf(error)}`
      event('Warning', 'FailedNodeAllocatableEnforcement', message)
      throw new Error(message)
    }
    event('Normal', 'NodeAllocatableEnforced', `Updated limits on ${part} reserved cgroup ${cgroup}`)
  }

  const limitedTo = new Map<string, CgroupLimits>()
  return {
    podLimits: (podUid) => limitedTo.get(podUid),
    limitPod: async (pod, limits) => {
      if (!host) return
      const uid = pod.metadata.uid ?? ''
      const group = podCgroupPath(config.cgroupRoot, pod)
      if (JSON.stringify(limitedTo.get(uid)) === JSON.stringify(limits) && (await host.cgroups.exists(group))) return
      await update()
      await timed(limitedTo.has(uid) ? 'update' : 'create', () => host.cgroups.ensure(group, limits))
      limitedTo.set(uid, limits)
    },
    removePod: async (pod) => {
      limitedTo.delete(pod.metadata.uid ?? '')
      if (host) await timed('destroy', () => host.cgroups.remove(podCgroupPath(config.cgroupRoot, pod)))
    },
    setUp: async () => {
      if (!host) return
      checkCgroupVersion(host.cgroups.version, config, (message) => event('Warning', 'CgroupV1', message))
      try {
        await host.cgroups.ensure(path('Guaranteed'), kubepodsLimits(context.machineInfo, config))
        event('Normal', 'NodeAllocatableEnforced', 'Updated Node Allocatable limit across pods')
      } catch (error) {
        // Pods of before may use more than they may now: eviction brings that down.
        const message = `Failed to update Node Allocatable Limits ["kubepods"]: ${messageOf(error)}`
        event('Warning', 'FailedNodeAllocatableEnforcement', message)
        await host.cgroups.ensure(path('Guaranteed'))
      }
      const pages = Object.fromEntries(
        [...hugepageBytes(context.machineInfo.topology ?? { cpus: [], numaNodes: [] }).keys()].map((size) => [hugepageFileSize(size), unlimitedHugepages]),
      )
      for (const qos of ['Burstable', 'BestEffort'] as const) await host.cgroups.ensure(path(qos), { hugepageLimits: pages })
      await update()
      await limitReserved('system')
      await limitReserved('kube')
    },
    run: async (signal) => {
      while (host && !signal.aborted) {
        await update().catch((error: unknown) => log.warn('Failed to reserve QoS requests', { error: String(error) }))
        await clock.sleep(updatePeriodMs, signal).catch(() => {})
      }
    },
  }
}

/** @throws Error in upstream's words where failCgroupV1 forbids to run here */
export function checkCgroupVersion(
  version: 1 | 2,
  config: Pick<ResourcesConfig, 'failCgroupV1' | 'singleProcessOOMKill'>,
  warn: (message: string) => void,
): void {
  if (version === 2) return
  if (config.singleProcessOOMKill === false) {
    throw new Error('invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1')
  }
  if (config.failCgroupV1) {
    throw new Error(
      'kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release: set failCgroupV1 to false, or boot the host with cgroup v2',
    )
  }
  warn('cgroup v1 support is in maintenance mode, please migrate to cgroup v2')
}
