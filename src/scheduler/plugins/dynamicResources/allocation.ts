/**
 * Input and result of a search for devices (L3). Upstream: dynamic-resource-allocation/structured/internal (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { DeviceClass, ResourceClaim } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Amounts } from './capacity.ts'
import type { Constraint } from './constraints.ts'
import type { DeviceSelectors } from './deviceSelectors.ts'
import type { UsedDevices } from './devicesInUse.ts'
import type { Pool, PoolDevice } from './pools.ts'
import type { PreparedRequest, RequestVariant } from './requests.ts'

/** One device for one request. */
export interface Taken {
  readonly variant: RequestVariant
  readonly device: PoolDevice
  /** Present for a share of a device that several claims may have. */
  readonly consumed: Amounts | undefined
}

export interface ClaimSolution {
  readonly claim: Frozen<ResourceClaim>
  readonly taken: readonly Taken[]
  /** The variant of each request that was chosen. */
  readonly chosen: readonly RequestVariant[]
}

export type AllocationOutcome = { readonly solution: readonly ClaimSolution[] } | { readonly failed: 'none' | 'invalidPools' }

export interface AllocatorDeps {
  readonly pools: readonly Pool[]
  readonly node: Frozen<Node>
  /** Must not change before the search ends: a search that is left and taken up again needs a snapshot. */
  readonly inUse: UsedDevices
  readonly selectors: DeviceSelectors
  readonly classOf: (name: string) => Frozen<DeviceClass> | undefined
}

/** A search that can be left and taken up again where it was. */
export interface Allocation {
  /**
   * @param leave when to leave it for now
   * @returns undefined when it was left
   * @throws Error when a claim or class is at fault, so that no other node would do either
   */
  run(leave: Leave): AllocationOutcome | undefined
}

export interface Leave {
  /** Asked every few steps. */
  isOver(): boolean
  /** Asked after each selector, whose cost is not known. */
  isLate(): boolean
}

/** A claim, and what it has by now. */
export interface ClaimWork {
  readonly claim: Frozen<ResourceClaim>
  readonly requests: readonly PreparedRequest[]
  readonly constraints: readonly Constraint[]
  readonly taken: Taken[]
  readonly chosen: number[]
}
