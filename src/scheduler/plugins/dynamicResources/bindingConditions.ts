/**
 * Binding conditions of devices that must be attached before a pod is bound (L3). Pure.
 * Upstream: dynamicresources.go isClaimReadyForBinding, isClaimTimeout (v1.36).
 */
import type { DeviceRequestAllocationResult, ResourceClaim } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { parseTime } from '#base/time'

type Claim = Frozen<ResourceClaim>

/** 'failed': other devices have to be found. */
export type Readiness = { readonly state: 'ready' | 'waiting' } | { readonly state: 'failed'; readonly reason: string }

export function hasBindingConditions({ status }: Claim): boolean {
  return resultsOf(status).some(({ bindingConditions }) => bindingConditions && bindingConditions.length > 0)
}

/** Failed when a driver sets a failure condition, or when the conditions are not met within `timeoutMs` after the allocation. */
export function bindingReadiness(claim: Claim, nowMs: number, timeoutMs: number): Readiness {
  const { status, metadata } = claim
  if (!status?.allocation) return { state: 'waiting' }
  for (const result of resultsOf(status)) {
    const { bindingConditions = [], bindingFailureConditions = [] } = result
    if (bindingConditions.length === 0) continue
    const conditions = conditionsOf(status, result)
    const failure = conditions.find(({ type, status }) => status === 'True' && bindingFailureConditions.includes(type))
    if (failure)
      return { state: 'failed', reason: `claim ${metadata.name} binding failed: reason=${failure.reason}, message=${JSON.stringify(failure.message)}` }
    if (bindingConditions.every((type) => conditions.some((condition) => condition.type === type && condition.status === 'True'))) continue
    const since = status.allocation.allocationTimestamp
    if (since !== undefined && (parseTime(since) ?? nowMs) + timeoutMs < nowMs) return { state: 'failed', reason: `claim ${metadata.name} binding timeout` }
    return { state: 'waiting' }
  }
  return { state: 'ready' }
}

function resultsOf(status: Claim['status']): readonly Frozen<DeviceRequestAllocationResult>[] {
  return status?.allocation?.devices?.results ?? []
}

function conditionsOf(status: NonNullable<Claim['status']>, { driver, pool, device }: Frozen<DeviceRequestAllocationResult>) {
  return status.devices?.find((one) => one.driver === driver && one.pool === pool && one.device === device)?.conditions ?? []
}
