/**
 * Finds devices for the claims of a pod on one node (L3), in slices of time: what a search has tried is kept between them. search.ts tries.
 * Upstream: dynamic-resource-allocation/structured Allocator (v1.36, the channel of features that are on by default).
 */
import type { ResourceClaim } from '#api/gen/types/resource.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { least } from '#base/extremes'
import type { Allocation, AllocatorDeps, ClaimWork } from './allocation.ts'
import { createConstraint } from './constraints.ts'
import { DeviceMatches } from './deviceMatches.ts'
import { prepareRequest } from './requests.ts'
import { maxDevicesPerClaim, Search } from './search.ts'

/** @throws Error when a claim or class is at fault, so that no other node would do either */
export function createAllocation(deps: AllocatorDeps, claims: readonly Frozen<ResourceClaim>[]): Allocation {
  const deviceMatches = new DeviceMatches(deps.selectors, deps.node)
  let search: Search | undefined
  return {
    run(leave) {
      deviceMatches.leaveWhen(() => leave.isLate())
      search ??= begin(deps, claims, deviceMatches)
      const isFound = search?.run(leave)
      if (!search || isFound === undefined) return undefined
      if (isFound) return { solution: search.solution() }
      return { failed: deps.pools.some(({ state }) => state === 'invalid') ? 'invalidPools' : 'none' }
    },
  }
}

/** @returns undefined when it was left: `deviceMatches` then has what selectors said so far */
function begin(deps: AllocatorDeps, claims: readonly Frozen<ResourceClaim>[], deviceMatches: DeviceMatches): Search | undefined {
  const left = new Error('left for now')
  const leave = () => {
    throw left
  }
  try {
    const work = claims.map((claim) => workOf(claim, { ...deps, deviceMatches, leave }))
    return new Search(deps, work)
  } catch (error) {
    if (error === left) return undefined
    throw error
  }
}

function workOf(claim: Frozen<ResourceClaim>, deps: Parameters<typeof prepareRequest>[2]): ClaimWork {
  const requests = (claim.spec.devices?.requests ?? []).map((request) => prepareRequest(request, claim, deps))
  const fewest = requests.reduce((sum, { variants }) => sum + least(variants.map(({ count }) => count)), 0)
  if (fewest > maxDevicesPerClaim)
    throw new Error(`claim ${keyOf(claim)}: number of requested devices ${fewest} exceeds the claim limit of ${maxDevicesPerClaim}`)
  const constraints = (claim.spec.devices?.constraints ?? []).map((one, index) => createConstraint(one, `claim ${keyOf(claim)}, constraint #${index}`))
  return { claim, requests, constraints, taken: [], chosen: [] }
}
