/**
 * Reports the resources of a pod as a whole (L3, pure): status.allocatedResources are the requests that the node has set aside, status.resources
 * what the pod's cgroup enforces once the pod runs. Upstream: kubelet_pods.go convertToAPIPodLevelResourcesStatus, cm/helpers_linux.go (v1.36).
 */
import type { PodStatus, ResourceRequirements } from '#api/gen/types/core.v1'
import { podLimits, podRequests, type ResourceAmounts } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { formatQuantity, milliQuantity, parseQuantity, quantityOf } from '#api/machinery/quantity'
import { podCgroupLimits } from '../core/cgroupResources.ts'
import type { FrozenPod } from '../core/containers.ts'

type Resources = Frozen<ResourceRequirements>
type PodLevelStatus = Pick<PodStatus, 'resources' | 'allocatedResources'>

/** CPU amounts at or below these are what the kernel's minimum means, whatever the pod asks for. */
const minMilliShares = 2
const minMilliLimit = 10

/**
 * @param pod with what it has been given
 * @param actuated what a resize has written for the pod as a whole; undefined when there was none
 */
export function podLevelStatus(pod: FrozenPod, actuated: Resources | undefined): PodLevelStatus {
  const requests = quantities(pod, 'requests', podRequests(pod))
  const resources = pod.status?.phase === 'Running' ? enforced(pod, actuated) : { requests, limits: quantities(pod, 'limits', podLimits(pod)) }
  const nonEmpty = Object.entries(resources).filter(([, list]) => Object.keys(list ?? {}).length > 0)
  return { resources: Object.fromEntries(nonEmpty), ...(Object.keys(requests).length > 0 ? { allocatedResources: requests } : {}) }
}

function enforced(pod: FrozenPod, actuated: Resources | undefined): Resources {
  const own = actuated ?? pod.spec.resources
  const given = own ? { ...pod, spec: { ...pod.spec, resources: own } } : pod
  const cgroup = podCgroupLimits(given, { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, podPidsLimit: -1 })
  const wanted = podRequests(given)
  const requests: ResourceAmounts = {}
  const limits: ResourceAmounts = {}
  const milliCpu = Math.ceil(((cgroup.cpuShares ?? 0) * 1000) / 1024)
  if (milliCpu > minMilliShares) requests.cpu = milliCpu
  if (own?.requests?.memory === undefined && wanted.memory !== undefined) requests.memory = wanted.memory
  const milliLimit = Math.ceil(((cgroup.cpuQuotaUs ?? 0) * 1000) / (cgroup.cpuPeriodUs ?? 1))
  if (milliLimit > minMilliLimit) limits.cpu = milliLimit
  if (cgroup.memoryLimitBytes) limits.memory = cgroup.memoryLimitBytes
  return { requests: { ...own?.requests, ...quantities(given, 'requests', requests) }, limits: { ...own?.limits, ...quantities(given, 'limits', limits) } }
}

type Which = 'requests' | 'limits'

/** Amounts as quantities, in the format that the pod itself uses for the resource. */
function quantities(pod: FrozenPod, which: Which, amounts: ResourceAmounts): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, quantityText(pod, which, name, amount)]))
}

function quantityText({ spec }: FrozenPod, which: Which, name: string, amount: number): string {
  if (name === 'cpu') return formatQuantity(milliQuantity(amount))
  const lists = [spec, ...spec.containers, ...(spec.initContainers ?? [])].map(({ resources }) => resources?.[which])
  const text = lists.find((list) => list?.[name] !== undefined)?.[name]
  return formatQuantity(quantityOf(amount, text === undefined ? 'BinarySI' : parseQuantity(text).format))
}
