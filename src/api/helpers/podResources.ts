/**
 * The requests and limits of a pod (L1): init containers run one after another, sidecars run all the time, and overhead is added.
 * Amounts are plain numbers: cpu in millicores, everything else in whole units (bytes, counts). Absent resources are omitted, never 0.
 * Upstream: component-helpers/resource helpers.go, kubernetes/pkg/apis/core/v1/helper/qos (v1.36).
 */
import type { Container, ContainerStatus, Pod } from '#api/gen/types/core.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities, formatQuantity, milliQuantity, quantityMilliValue, quantityOf, quantitySign, quantityValue } from '#api/machinery/quantity'
import { emptyMap } from '#base/bareMap'

export type ResourceAmounts = Record<string, number>
type ResourceList = Readonly<Record<string, string>>

export interface PodResourcesOptions {
  /** Count allocated resources where they exceed the spec: the kubelet is still resizing the pod. */
  readonly useStatusResources?: boolean | undefined
  /** With useStatusResources: only of containers, spec.resources count as they are. */
  readonly ignorePodLevelStatus?: boolean | undefined
  readonly excludeOverhead?: boolean | undefined
  /** Ignore spec.resources and count the containers' resources alone. */
  readonly skipPodLevelResources?: boolean | undefined
  /** What a container counts as that does not ask for a resource at all. */
  readonly missingRequests?: Readonly<ResourceAmounts> | undefined
}

/** One resource's amount in the unit of {@link ResourceAmounts}. */
export function resourceAmount(name: string, quantity: string | number): number {
  return name === 'cpu' ? quantityMilliValue(quantity) : quantityValue(quantity)
}

/** The quantity of an amount, as {@link resourceAmount} counts it. */
export function amountText(name: string, amount: number): string {
  return formatQuantity(name === 'cpu' ? milliQuantity(amount) : quantityOf(amount, 'BinarySI'))
}

/** What a pod can ask for as a whole. Upstream: component-helpers/resource IsSupportedPodLevelResource. */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || name.startsWith('hugepages-')
}

export function amountsOf(list: ResourceList | undefined): ResourceAmounts {
  const amounts: ResourceAmounts = emptyMap()
  for (const name in list) amounts[name] = resourceAmount(name, list[name] as string)
  return amounts
}

/** The effective requests of a pod, as the scheduler, quota and eviction count them. */
export function podRequests(pod: Frozen<Pod>, options: PodResourcesOptions = {}): ResourceAmounts {
  const requestsOf = (container: Frozen<Container>, status: Frozen<ContainerStatus> | undefined): ResourceAmounts => {
    let requests = amountsOf(container.resources?.requests)
    if (options.useStatusResources && status?.resources) requests = effective(pod, requests, status.resources.requests, status.allocatedResources)
    for (const name in options.missingRequests) requests[name] ??= options.missingRequests[name] as number
    return requests
  }
  const requests = aggregate(pod, requestsOf)
  if (!options.skipPodLevelResources && pod.spec.resources?.requests) {
    const own = amountsOf(pod.spec.resources.requests)
    const { resources, allocatedResources } = (options.useStatusResources && !options.ignorePodLevelStatus && pod.status) || {}
    const counted = resources ? effective(pod, own, resources.requests, allocatedResources) : own
    for (const name in own) if (isPodLevelResource(name)) requests[name] = counted[name] ?? 0
  }
  if (!options.excludeOverhead) add(requests, amountsOf(pod.spec.overhead))
  return requests
}

/** The effective limits of a pod; a resource that a running container leaves unlimited still shows the others' sum, as upstream's does. */
export function podLimits(pod: Frozen<Pod>, options: PodResourcesOptions = {}): ResourceAmounts {
  const limits = aggregate(pod, (container, status) => {
    const own = amountsOf(container.resources?.limits)
    return options.useStatusResources && status?.resources ? effective(pod, own, status.resources.limits, undefined) : own
  })
  if (!options.skipPodLevelResources) override(limits, pod.spec.resources?.limits)
  if (!options.excludeOverhead) {
    const overhead = amountsOf(pod.spec.overhead)
    for (const name in overhead) if (limits[name]) limits[name] += overhead[name] as number
  }
  return limits
}

/** Guaranteed, Burstable or BestEffort. */
export function qosClass(pod: Frozen<Pick<Pod, 'spec'>>): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const spec = pod.spec
  const podLevel = spec.resources && (hasAmount(spec.resources.requests) || hasAmount(spec.resources.limits))
  const parts = podLevel ? [spec.resources] : [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map((container) => container.resources)
  if (parts.every((part) => !hasAmount(part?.requests) && !hasAmount(part?.limits))) return 'BestEffort'
  const guaranteed = parts.every((part) =>
    ['cpu', 'memory'].every((name) => {
      const limit = part?.limits?.[name]
      if (limit === undefined || quantitySign(limit) <= 0) return false
      const request = part?.requests?.[name]
      return request === undefined || compareQuantities(request, limit) === 0
    }),
  )
  return guaranteed ? 'Guaranteed' : 'Burstable'
}

function hasAmount(list: ResourceList | undefined): boolean {
  return ['cpu', 'memory'].some((name) => list?.[name] !== undefined && quantitySign(list[name]) > 0)
}

/** While a pod is resized the most counts of what is asked for, set aside and in force; of a resize that cannot be, what is asked for does not. */
function effective(pod: Frozen<Pod>, asked: ResourceAmounts, actuated: ResourceList | undefined, allocated: ResourceList | undefined): ResourceAmounts {
  const infeasible = findCondition(pod.status?.conditions, 'PodResizePending')?.reason === 'Infeasible'
  return raise(raise(infeasible ? {} : { ...asked }, amountsOf(actuated)), amountsOf(allocated))
}

function aggregate(
  pod: Frozen<Pod>,
  amountsOfContainer: (container: Frozen<Container>, status: Frozen<ContainerStatus> | undefined) => ResourceAmounts,
): ResourceAmounts {
  const total: ResourceAmounts = {}
  const { containerStatuses, initContainerStatuses } = pod.status ?? {}
  const statusOf = (statuses: typeof containerStatuses, { name }: Frozen<Container>) => statuses?.find((candidate) => candidate.name === name)
  for (const container of pod.spec.containers ?? []) add(total, amountsOfContainer(container, statusOf(containerStatuses, container)))
  const sidecars: ResourceAmounts = {}
  const init: ResourceAmounts = {}
  for (const container of pod.spec.initContainers ?? []) {
    const isSidecar = container.restartPolicy === 'Always'
    const amounts = amountsOfContainer(container, isSidecar ? statusOf(initContainerStatuses, container) : undefined)
    if (isSidecar) {
      add(total, amounts)
      add(sidecars, amounts)
      raise(init, sidecars)
    } else raise(init, add(amounts, sidecars))
  }
  return raise(total, init)
}

function add(target: ResourceAmounts, more: ResourceAmounts): ResourceAmounts {
  for (const name in more) target[name] = (target[name] ?? 0) + (more[name] as number)
  return target
}

function raise(target: ResourceAmounts, least: ResourceAmounts): ResourceAmounts {
  for (const name in least) target[name] = Math.max(target[name] ?? 0, least[name] as number)
  return target
}

/** Pod-level amounts replace the containers' sum, for the resources that a pod may state as a whole. */
function override(target: ResourceAmounts, podLevel: ResourceList | undefined): void {
  for (const name in podLevel) {
    if (isPodLevelResource(name)) target[name] = resourceAmount(name, podLevel[name] as string)
  }
}
