/** Builds the allocation of a claim's status from the devices found for it (L3). Upstream: structured Allocator.Allocate, createNodeSelector (v1.36). */
import type { NodeSelector, NodeSelectorRequirement } from '#api/gen/types/core.v1'
import type { AllocationResult, DeviceAllocationConfiguration, DeviceRequestAllocationResult } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { formatQuantity } from '#api/machinery/quantity'
import { deepCopy } from '#base/frozen'
import { type Random, randomUid } from '#base/random'
import type { ClaimSolution, Taken } from './allocation.ts'

export function allocationOf(solution: ClaimSolution, nodeName: string, random: Random): AllocationResult {
  const results = solution.taken.map((taken) => resultOf(taken, random))
  const config = configOf(solution)
  const nodeSelector = nodeSelectorOf(solution.taken, nodeName)
  return { devices: { ...(results.length > 0 ? { results } : {}), ...(config.length > 0 ? { config } : {}) }, ...(nodeSelector ? { nodeSelector } : {}) }
}

function resultOf({ variant, device: { device, pool }, consumed }: Taken, random: Random): DeviceRequestAllocationResult {
  const { bindingConditions, bindingFailureConditions } = device
  const amounts = Object.entries(consumed ?? {}).map(([name, amount]) => [name, formatQuantity(amount)])
  return {
    request: variant.fullName,
    driver: pool.driver,
    pool: pool.name,
    device: device.name,
    ...(variant.adminAccess ? { adminAccess: true } : {}),
    ...(variant.tolerations.length > 0 ? { tolerations: variant.tolerations.map((one) => ({ ...one })) } : {}),
    ...(bindingConditions ? { bindingConditions: [...bindingConditions] } : {}),
    ...(bindingFailureConditions ? { bindingFailureConditions: [...bindingFailureConditions] } : {}),
    ...(consumed ? { shareID: randomUid(random) } : {}),
    ...(amounts.length > 0 ? { consumedCapacity: Object.fromEntries(amounts) } : {}),
  }
}

/** First the configuration of the classes, once for all requests of a class; then the claim's own, without that of alternatives that were not chosen. */
function configOf({ claim, chosen }: ClaimSolution): DeviceAllocationConfiguration[] {
  const requestsOf = new Map<(typeof chosen)[number]['deviceClass'], string[]>()
  for (const { deviceClass, fullName } of chosen) requestsOf.set(deviceClass, [...(requestsOf.get(deviceClass) ?? []), fullName])
  const config: DeviceAllocationConfiguration[] = []
  for (const [deviceClass, requests] of requestsOf)
    for (const one of deviceClass.spec.config ?? [])
      config.push({ source: 'FromClass', requests, ...deepCopy<typeof one>(one) } as DeviceAllocationConfiguration)
  const names = new Set(chosen.flatMap((variant) => variant.names))
  for (const one of claim.spec.devices?.config ?? [])
    if (!one.requests?.length || one.requests.some((name) => names.has(name)))
      config.push({ source: 'FromClaim', ...deepCopy<typeof one>(one) } as DeviceAllocationConfiguration)
  return config
}

/** Undefined: everywhere. */
function nodeSelectorOf(taken: readonly Taken[], nodeName: string): NodeSelector | undefined {
  const matchFields: NodeSelectorRequirement[] = []
  const matchExpressions: NodeSelectorRequirement[] = []
  for (const { device } of taken) {
    const selection = device.slice.spec.perDeviceNodeSelection ? device.device : device.slice.spec
    if (selection.nodeName || device.device.bindsToNode)
      return { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [nodeName] }] }] }
    const term = selection.nodeSelector?.nodeSelectorTerms[0]
    addMissing(matchFields, term?.matchFields)
    addMissing(matchExpressions, term?.matchExpressions)
  }
  if (matchFields.length === 0 && matchExpressions.length === 0) return undefined
  return { nodeSelectorTerms: [{ ...(matchFields.length > 0 ? { matchFields } : {}), ...(matchExpressions.length > 0 ? { matchExpressions } : {}) }] }
}

function addMissing(to: NodeSelectorRequirement[], from: readonly Frozen<NodeSelectorRequirement>[] | undefined): void {
  const same = (a: Frozen<NodeSelectorRequirement>, b: Frozen<NodeSelectorRequirement>) =>
    a.key === b.key && a.operator === b.operator && [...(a.values ?? [])].sort().join() === [...(b.values ?? [])].sort().join()
  for (const one of from ?? []) if (!to.some((there) => same(there, one))) to.push(deepCopy<NodeSelectorRequirement>(one))
}
