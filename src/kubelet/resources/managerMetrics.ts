/**
 * What the managers of the node's resources count (L3), under upstream's names. Upstream: kubelet/metrics/metrics.go, cm/cpumanager/policy_static.go,
 * cm/memorymanager/policy_static.go, cm/topologymanager, cm/devicemanager, cm/dra, cm/cgroup_manager_linux.go, apis/podresources (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { FrozenContainer, FrozenPod } from '../core/containers.ts'
import type { CpuSet } from '../core/cpuSet.ts'
import type { CpuLayout } from '../core/machineTopology.ts'
import type { HintProvider } from './topology/topologyManager.ts'

export interface MetricsDeps {
  readonly metrics: Metrics
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** Within what a container's resources lie together. */
type Boundary = 'physical_cpu' | 'uncore_cache' | 'numa_node'

function alignment({ metrics }: MetricsDeps) {
  const labels = ['scope', 'boundary'] as const
  const aligned = metrics.counter({
    name: 'kubelet_container_aligned_compute_resources_count',
    help: 'How many containers got resources that lie together, by what they lie in.',
    labels,
  })
  const failed = metrics.counter({
    name: 'kubelet_container_aligned_compute_resources_failure_count',
    help: 'How many containers could not get resources that lie together, by what they should lie in.',
    labels,
  })
  return (scope: string, boundary: Boundary, succeeded: boolean) => (succeeded ? aligned : failed).inc({ scope, boundary })
}

/** Counts what `allocate` is asked for and refuses. `isPinned`: whether there is anything for it to do. */
function counted(
  { metrics }: MetricsDeps,
  name: string,
  provider: HintProvider,
  isPinned: (pod: FrozenPod, container: FrozenContainer) => boolean,
  onEnd: (pod: FrozenPod, container: FrozenContainer, succeeded: boolean) => void = () => {},
): HintProvider {
  const requests = metrics.counter({ name: `kubelet_${name}_pinning_requests_total`, help: 'How many allocations had to be pinned.' })
  const errors = metrics.counter({ name: `kubelet_${name}_pinning_errors_total`, help: 'How many allocations that had to be pinned have failed.' })
  return {
    hints: provider.hints,
    podHints: provider.podHints,
    allocate: async (pod, container, hint) => {
      if (!isPinned(pod, container)) return provider.allocate(pod, container, hint)
      requests.inc()
      try {
        await provider.allocate(pod, container, hint)
      } catch (error) {
        errors.inc()
        onEnd(pod, container, false)
        throw error
      }
      onEnd(pod, container, true)
    },
  }
}

export interface MeteredCpus extends HintProvider {
  exclusive(podUid: string, container: string): CpuSet
  /** All that containers have for themselves, and what the others share. */
  assigned(): CpuSet
  available(): CpuSet
}

export interface CpuMetrics {
  readonly provider: HintProvider
  /** Called after CPUs were allocated or released. */
  poolChanged(): void
}

/** @param wholeCores whether containers get physical CPUs alone */
export function meterCpus(
  deps: MetricsDeps,
  cpus: MeteredCpus,
  layout: CpuLayout,
  wholeCores: boolean,
  isPinned: (pod: FrozenPod, container: FrozenContainer) => boolean,
): CpuMetrics {
  const note = alignment(deps)
  const sharedPool = deps.metrics.gauge({ name: 'kubelet_cpu_manager_shared_pool_size_millicores', help: 'What pods without CPUs of their own share.' })
  const exclusiveCount = deps.metrics.gauge({
    name: 'kubelet_cpu_manager_exclusive_cpu_allocation_count',
    help: 'How many CPUs containers have for themselves.',
  })
  const perNuma = deps.metrics.gauge({
    name: 'kubelet_cpu_manager_allocation_per_numa',
    help: 'How many CPUs containers have for themselves, by NUMA node.',
    labels: ['numa_node'],
  })
  const poolChanged = () => {
    const assigned = cpus.assigned()
    sharedPool.set(cpus.available().length * 1000)
    exclusiveCount.set(assigned.length)
    for (const { id } of layout.topology.numaNodes) {
      perNuma.set(assigned.filter((cpu) => layout.info(cpu)?.numaNode === id).length, { numa_node: String(id) })
    }
  }
  const onEnd = (pod: FrozenPod, container: FrozenContainer, succeeded: boolean) => {
    if (wholeCores) note('container', 'physical_cpu', succeeded)
    if (!succeeded) return
    const caches = new Set(cpus.exclusive(pod.metadata.uid ?? '', container.name).map((cpu) => layout.info(cpu)?.uncoreCache))
    if (caches.size === 1) note('container', 'uncore_cache', true)
  }
  poolChanged()
  return { provider: counted(deps, 'cpu_manager', cpus, isPinned, onEnd), poolChanged }
}

/** Counts the allocations of pods whose memory is pinned. */
export function meterMemory(deps: MetricsDeps, memory: HintProvider, isPinned: (pod: FrozenPod) => boolean): HintProvider {
  return counted(deps, 'memory_manager', memory, isPinned)
}

export interface TopologyMetrics {
  /** Measures the admission of a pod; `isRefused` tests its result. */
  timed<T>(admit: () => Promise<T>, isRefused: (answer: T) => boolean): Promise<T>
  /** One container, where the policy guarantees that its resources lie on one NUMA node. */
  aligned(scope: string, succeeded: boolean): void
}

/** Metrics of the topology manager's admissions. */
export function topologyMetrics(deps: MetricsDeps): TopologyMetrics {
  const { metrics, clock } = deps
  const note = alignment(deps)
  const requests = metrics.counter({ name: 'kubelet_topology_manager_admission_requests_total', help: 'How many pods were asked to be aligned.' })
  const errors = metrics.counter({ name: 'kubelet_topology_manager_admission_errors_total', help: 'How many pods could not be aligned.' })
  const duration = metrics.histogram({
    name: 'kubelet_topology_manager_admission_duration_ms',
    help: 'How long it took to align a pod, in milliseconds.',
    buckets: Array.from({ length: 15 }, (_, power) => 0.05 * 2 ** power),
  })
  return {
    aligned: (scope, succeeded) => note(scope, 'numa_node', succeeded),
    timed: async (admit, isRefused) => {
      requests.inc()
      const startedMs = clock.monotonicMs()
      const answer = await admit()
      duration.observe(clock.monotonicMs() - startedMs)
      if (isRefused(answer)) errors.inc()
      return answer
    },
  }
}

/** Of device plugins: how often they register, and how long they take to allocate. */
export function deviceMetrics({ metrics, clock }: MetricsDeps) {
  const labels = ['resource_name'] as const
  const registrations = metrics.counter({ name: 'kubelet_device_plugin_registration_total', help: 'How often a device plugin has registered.', labels })
  const allocation = metrics.histogram({
    name: 'kubelet_device_plugin_alloc_duration_seconds',
    help: 'How long a device plugin took to allocate, in seconds.',
    labels,
  })
  return {
    registered: (resource: string) => registrations.inc({ resource_name: resource }),
    timedAllocation: async <T>(resource: string, allocate: () => Promise<T>): Promise<T> => {
      const startedMs = clock.monotonicMs()
      const answer = await allocate()
      allocation.observe((clock.monotonicMs() - startedMs) / 1000, { resource_name: resource })
      return answer
    },
  }
}

export type DeviceMetrics = ReturnType<typeof deviceMetrics>

type PodResourcesMethod = 'list' | 'get' | 'get_allocatable'

/** Counts the requests of each method of the pod resources API, and those that failed. */
export function podResourcesMetrics({ metrics }: Pick<MetricsDeps, 'metrics'>) {
  const labels = ['server_api_version'] as const
  const series = { server_api_version: 'v1' }
  const counter = (name: string) => metrics.counter({ name: `kubelet_pod_resources_endpoint_${name}`, help: 'Requests to the pod resources API.', labels })
  const total = counter('requests_total')
  return <A, B>(method: PodResourcesMethod, answer: (request: A) => B): ((request: A) => B) => {
    const [requests, errors] = [counter(`requests_${method}`), counter(`errors_${method}`)]
    return (request) => {
      total.inc(series)
      requests.inc(series)
      try {
        return answer(request)
      } catch (error) {
        errors.inc(series)
        throw error
      }
    }
  }
}

/** Metrics of DRA: operations for pods, calls of drivers, and the claims in use. */
export function draMetrics({ metrics, clock }: MetricsDeps) {
  const operations = metrics.histogram({
    name: 'dra_operations_duration_seconds',
    help: 'How long all claims of a pod took to be prepared or unprepared, in seconds.',
    labels: ['operation_name', 'is_error'],
  })
  const calls = metrics.histogram({
    name: 'dra_grpc_operations_duration_seconds',
    help: 'How long the call of a DRA driver took, in seconds.',
    labels: ['driver_name', 'method_name', 'grpc_status_code'],
  })
  const inUse = metrics.gauge({
    name: 'dra_resource_claims_in_use',
    help: 'How many claims are in use on the node, by driver and over all.',
    labels: ['driver_name'],
  })
  let drivers = new Set<string>()
  const timed = async <T>(work: () => Promise<T>, observe: (seconds: number, failure: unknown) => void): Promise<T> => {
    const startedMs = clock.monotonicMs()
    const seconds = () => (clock.monotonicMs() - startedMs) / 1000
    try {
      const answer = await work()
      observe(seconds(), undefined)
      return answer
    } catch (error) {
      observe(seconds(), error)
      throw error
    }
  }
  return {
    operation: <T>(name: 'PrepareResources' | 'UnprepareResources', work: () => Promise<T>) =>
      timed(work, (seconds, failure) => operations.observe(seconds, { operation_name: name, is_error: String(failure !== undefined) })),
    call: <T>(driver: string, method: 'NodePrepareResources' | 'NodeUnprepareResources', work: () => Promise<T>) =>
      timed(work, (seconds, failure) =>
        calls.observe(seconds, {
          driver_name: driver,
          method_name: `/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/${method}`,
          grpc_status_code: failure === undefined ? 'OK' : ((failure as { grpcStatus?: string }).grpcStatus ?? 'Unknown'),
        }),
      ),
    /** The drivers of each claim. */
    claims: (all: readonly { readonly drivers: ReadonlyMap<string, unknown> }[]) => {
      const counts = new Map<string, number>([['<any>', all.length]])
      for (const claim of all) for (const driver of claim.drivers.keys()) counts.set(driver, (counts.get(driver) ?? 0) + 1)
      for (const driver of drivers) if (!counts.has(driver)) inUse.remove({ driver_name: driver })
      for (const [driver, count] of counts) inUse.set(count, { driver_name: driver })
      drivers = new Set(counts.keys())
    },
  }
}

export type DraMetrics = ReturnType<typeof draMetrics>

/** @param version of the host's control groups; undefined: the node has none */
export function cgroupMetrics({ metrics, clock }: MetricsDeps, version: 1 | 2 | undefined) {
  const duration = metrics.histogram({
    name: 'kubelet_cgroup_manager_duration_seconds',
    help: 'How long an operation on control groups took, in seconds.',
    labels: ['operation_type'],
  })
  if (version) metrics.gauge({ name: 'kubelet_cgroup_version', help: 'The version of control groups that this host has.' }).set(version)
  return async (operation: 'create' | 'update' | 'destroy', work: () => Promise<void>): Promise<void> => {
    const startedMs = clock.monotonicMs()
    await work()
    duration.observe((clock.monotonicMs() - startedMs) / 1000, { operation_type: operation })
  }
}

/** Memory that the groups of QoS classes are protected in. Without feature gate MemoryQoS there are no such metrics. */
export function memoryQosMetrics(metrics: Metrics, isOn: boolean): (limits: QosProtection) => void {
  if (!isOn) return () => {}
  const gauge = (name: string, help: string) => metrics.gauge({ name: `kubelet_memory_qos_node_${name}`, help })
  const min = gauge('memory_min_bytes', 'Memory of Guaranteed pods that the kernel never reclaims, in bytes.')
  const low = gauge('memory_low_bytes', 'Memory of Burstable pods that the kernel reclaims last, in bytes.')
  return ({ guaranteed, burstable }) => {
    const lowBytes = burstable.memoryLowBytes ?? 0
    low.set(lowBytes)
    // The group of Guaranteed pods covers that of Burstable pods.
    min.set(Math.max(0, (guaranteed?.memoryMinBytes ?? 0) - lowBytes))
  }
}

interface QosProtection {
  readonly guaranteed?: { readonly memoryMinBytes?: number | undefined } | undefined
  readonly burstable: { readonly memoryLowBytes?: number | undefined }
}
