/**
 * The usage that an object adds to a ResourceQuota (L1, pure). Admission and the controller of the quota's status share it.
 * Amounts are numbers: milli for cpu, plain values for everything else. Upstream: pkg/quota/v1/evaluator/core (v1.36).
 */
import type { PersistentVolumeClaim, Pod, ResourceQuota, ScopedResourceSelectorRequirement, Service } from '#api/gen/types/core.v1'
import type { ResourceClaim } from '#api/gen/types/resource.v1'
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'
import { formatQuantity, milliQuantity, quantityOf } from '#api/machinery/quantity'
import { bareMap, emptyMap } from '#base/bareMap'
import { parseTime } from '#base/time'
import { podLimits, podRequests, qosClass, resourceAmount } from './podResources.ts'

export type QuotaAmounts = Readonly<Record<string, number>>

/** Resources that quotas could count before `count/…` existed. */
const countedByName = ['pods', 'services', 'replicationcontrollers', 'resourcequotas', 'secrets', 'configmaps', 'persistentvolumeclaims']
const bareNames = ['cpu', 'memory', 'ephemeral-storage']

/** Resources that quotas never count: virtual ones and events. Upstream: pkg/quota/v1/install/registry.go. */
const ignored: ReadonlySet<string> = new Set([
  '/bindings',
  '/componentstatuses',
  '/events',
  'events.k8s.io/events',
  'authorization.k8s.io/localsubjectaccessreviews',
])

/** Quotas never count objects of this resource. */
export function isIgnoredByQuota({ group, resource }: GroupResource): boolean {
  return ignored.has(`${group}/${resource}`)
}

/**
 * The amounts by quota resource name: `requests.cpu`, `count/deployments.apps`, `services.nodeports`, …
 * @param nowMs if given, terminating pods whose grace period is over are not charged
 */
export function quotaUsage({ group, resource }: GroupResource, object: Frozen<KubeObject>, nowMs?: number): QuotaAmounts {
  const usage: Record<string, number> = bareMap({ [`count/${resource}${group ? `.${group}` : ''}`]: 1 })
  if (group === 'resource.k8s.io' && resource === 'resourceclaims') return { ...usage, ...resourceClaimUsage(object as Frozen<ResourceClaim>) }
  if (group !== '') return usage
  if (resource === 'pods') return { ...usage, ...podUsage(object as Frozen<Pod>, nowMs) }
  if (countedByName.includes(resource)) usage[resource] = 1
  if (resource === 'services') return { ...usage, ...serviceUsage(object as Frozen<Service>) }
  if (resource === 'persistentvolumeclaims') return { ...usage, ...claimUsage(object as Frozen<PersistentVolumeClaim>) }
  return usage
}

/** A pod that has ended, or whose grace period is over, holds nothing but its place in the store. */
function isCharged({ metadata, status }: Frozen<Pod>, nowMs: number | undefined): boolean {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return false
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata
  if (nowMs === undefined || deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return true
  return nowMs <= (parseTime(deletionTimestamp) ?? nowMs) + deletionGracePeriodSeconds * 1000
}

/** During a resize a pod holds the larger of its allocated and its desired resources; its spec.resources count as they are, as upstream's do. */
const resizing = { useStatusResources: true, ignorePodLevelStatus: true }

function podUsage(pod: Frozen<Pod>, nowMs: number | undefined): Record<string, number> {
  if (!isCharged(pod, nowMs)) return {}
  const usage: Record<string, number> = bareMap({ pods: 1 })
  for (const [name, amount] of Object.entries(podRequests(pod, resizing))) {
    usage[`requests.${name}`] = amount
    if (bareNames.includes(name) || name.startsWith('hugepages-')) usage[name] = amount
  }
  for (const [name, amount] of Object.entries(podLimits(pod, resizing))) if (bareNames.includes(name)) usage[`limits.${name}`] = amount
  return usage
}

function serviceUsage({ spec }: Frozen<Service>): Record<string, number> {
  const ports = spec.ports?.length ?? 0
  if (spec.type === 'NodePort') return { 'services.nodeports': ports }
  if (spec.type !== 'LoadBalancer') return {}
  return {
    'services.loadbalancers': 1,
    'services.nodeports': spec.allocateLoadBalancerNodePorts === false ? (spec.ports?.filter((port) => port.nodePort).length ?? 0) : ports,
  }
}

function claimUsage({ metadata, spec, status }: Frozen<PersistentVolumeClaim>): Record<string, number> {
  const asked = spec.resources?.requests?.storage
  // While a claim shrinks again after an expansion that failed, it still holds what was given.
  const storage =
    asked === undefined ? undefined : Math.max(resourceAmount('storage', asked), resourceAmount('storage', status?.allocatedResources?.storage ?? '0'))
  const all: Record<string, number> = storage === undefined ? {} : { 'requests.storage': storage }
  const className = metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? spec.storageClassName ?? ''
  if (className === '') return all
  const perClass = `${className}.storageclass.storage.k8s.io`
  if (storage !== undefined) all[`${perClass}/requests.storage`] = storage
  return { ...all, [`${perClass}/persistentvolumeclaims`]: 1 }
}

/** Devices by their class; of alternatives the one that takes most of a class counts. Upstream: evaluator/core/resource_claims.go. */
function resourceClaimUsage({ spec }: Frozen<ResourceClaim>): Record<string, number> {
  const usage: Record<string, number> = emptyMap()
  for (const { exactly, firstAvailable } of spec.devices?.requests ?? []) {
    const most: Record<string, number> = emptyMap()
    for (const { deviceClassName, allocationMode, count } of firstAvailable ?? (exactly ? [exactly] : [])) {
      const name = `${deviceClassName}.deviceclass.resource.k8s.io/devices`
      most[name] = Math.max(most[name] ?? 0, allocationMode === 'All' ? mostDevicesOfClaim : (count ?? 1))
    }
    for (const [name, devices] of Object.entries(most)) usage[name] = (usage[name] ?? 0) + devices
  }
  return usage
}

/** Most devices that a request for `All` can get. Upstream: AllocationResultsMaxSize. */
const mostDevicesOfClaim = 32

/** The quota resource names that objects of this resource can consume. */
export function quotaNamesOf({ group, resource }: GroupResource, names: readonly string[]): string[] {
  const count = `count/${resource}${group ? `.${group}` : ''}`
  return names.filter((name) => {
    if (name.startsWith('count/')) return name === count
    if (name.endsWith('.deviceclass.resource.k8s.io/devices')) return group === 'resource.k8s.io' && resource === 'resourceclaims'
    if (group !== '') return false
    if (countedByName.includes(name)) return name === resource
    if (name.startsWith('services.')) return resource === 'services'
    if (name === 'requests.storage' || name.includes('.storageclass.storage.k8s.io/')) return resource === 'persistentvolumeclaims'
    return resource === 'pods' && (bareNames.includes(name) || /^(requests\.|limits\.|hugepages-)/.test(name))
  })
}

/** Whether the quota's scopes include the object. Only pods and claims have scopes. */
export function quotaCovers(quota: Frozen<ResourceQuota>, resource: GroupResource, object: Frozen<KubeObject>): boolean {
  return quotaScopesOf(quota).every((scope) => scopeCovers(scope, resource, object))
}

export function quotaScopesOf({ spec }: Frozen<ResourceQuota>): readonly Frozen<ScopedResourceSelectorRequirement>[] {
  return [...(spec.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' })), ...(spec.scopeSelector?.matchExpressions ?? [])]
}

/** Whether one scope includes the object. */
export function scopeCovers(scope: Frozen<ScopedResourceSelectorRequirement>, { group, resource }: GroupResource, object: Frozen<KubeObject>): boolean {
  if (group !== '') return false
  if (resource === 'persistentvolumeclaims') return scopeIncludesClaim(scope, object as Frozen<PersistentVolumeClaim>)
  return resource === 'pods' && scopeIncludes(scope, object as Frozen<Pod>)
}

/** Every attributes class that the claim names, has, or is on its way to. */
function scopeIncludesClaim({ scopeName, operator, values = [] }: Frozen<ScopedResourceSelectorRequirement>, claim: Frozen<PersistentVolumeClaim>): boolean {
  if (scopeName !== 'VolumeAttributesClass') return false
  const { spec, status } = claim
  const named = [spec.volumeAttributesClassName, status?.currentVolumeAttributesClassName, status?.modifyVolumeStatus?.targetVolumeAttributesClassName]
  const classes = named.filter((name): name is string => name !== undefined && name !== '')
  if (operator === 'In') return classes.some((name) => values.includes(name))
  if (operator === 'NotIn') return classes.length === 0 || classes.some((name) => !values.includes(name))
  return operator === 'DoesNotExist' ? classes.length === 0 : classes.length > 0
}

/** What the scopes Terminating and NotTerminating tell apart. */
export function hasDeadline({ spec }: Frozen<Pod>): boolean {
  return (spec.activeDeadlineSeconds ?? -1) >= 0
}

function scopeIncludes({ scopeName, operator, values = [] }: Frozen<ScopedResourceSelectorRequirement>, pod: Frozen<Pod>): boolean {
  switch (scopeName) {
    case 'Terminating':
      return hasDeadline(pod)
    case 'NotTerminating':
      return !hasDeadline(pod)
    case 'BestEffort':
      return qosClass(pod) === 'BestEffort'
    case 'NotBestEffort':
      return qosClass(pod) !== 'BestEffort'
    case 'PriorityClass': {
      const name = pod.spec.priorityClassName ?? ''
      if (operator === 'In') return values.includes(name)
      if (operator === 'NotIn') return !values.includes(name)
      return operator === 'DoesNotExist' ? name === '' : name !== ''
    }
    case 'CrossNamespacePodAffinity': {
      const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {}
      const terms = [podAffinity, podAntiAffinity].flatMap((one) => [
        ...(one?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
        ...(one?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((weighted) => weighted.podAffinityTerm),
      ])
      return terms.some((term) => (term.namespaces?.length ?? 0) > 0 || term.namespaceSelector !== undefined)
    }
    default:
      return false
  }
}

/** A quota's hard limit as an amount. */
export function quotaAmount(name: string, quantity: string): number {
  return resourceAmount(isCpu(name) ? 'cpu' : name, quantity)
}

/** An amount as a quantity, the way people write it. */
export function formatQuotaAmount(name: string, amount: number): string {
  if (isCpu(name)) return formatQuantity(milliQuantity(amount))
  return formatQuantity(quantityOf(amount, /memory|storage$|hugepages-/.test(name) ? 'BinarySI' : 'DecimalSI'))
}

function isCpu(name: string): boolean {
  return name === 'cpu' || name.endsWith('.cpu')
}
