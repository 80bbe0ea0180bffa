/**
 * Finds devices for the claims of a pod on one node (L3): every request in turn takes the first device that is free, matches and keeps the constraints,
 * and the search goes back where a later one finds none. The first complete solution wins; nothing is scored.
 * Upstream: dynamic-resource-allocation/structured Allocator (v1.36, the channel of features that are on by default).
 */

import type { Node } from '#api/gen/types/core.v1'
import type { DeviceClass, ResourceClaim } from '#api/gen/types/resource.v1'
import { deviceTolerationToleratesTaint } from '#api/helpers/deviceTaints'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { least } from '#base/extremes'
import { type Amounts, addAmounts, consumedBy, isLeft } from './capacity.ts'
import { type Constraint, createConstraint } from './constraints.ts'
import { CounterUse } from './counters.ts'
import type { DeviceSelectors } from './deviceSelectors.ts'
import type { DevicesInUse } from './devicesInUse.ts'
import type { Pool, PoolDevice } from './pools.ts'
import { type PreparedRequest, prepareRequest, type RequestVariant } from './requests.ts'

export const maxDevicesPerClaim = 32
const stepsBetweenLooks = 256
/** A search that is this long remembers what has failed, to try it once only. */
const stepsBeforeMemory = 1000
/** Some megabytes. */
const maxRemembered = 50_000

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
  readonly inUse: DevicesInUse
  readonly selectors: DeviceSelectors
  readonly classOf: (name: string) => Frozen<DeviceClass> | undefined
}

/** A search that can be left and taken up again: the devices in use and the pools must be the same then. */
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

/** @throws Error when a claim or class is at fault, so that no other node would do either */
export function createAllocation(deps: AllocatorDeps, claims: readonly Frozen<ResourceClaim>[]): Allocation {
  const failed = new Set<string>()
  const matched = new Map<string, Map<PoolDevice, boolean>>()
  return {
    run(leave) {
      try {
        const search = new Search({ ...deps, failed, matched, leave }, claims)
        if (search.run()) return { solution: search.solution() }
      } catch (error) {
        if (error === left) return undefined
        throw error
      }
      return { failed: deps.pools.some(({ state }) => state === 'invalid') ? 'invalidPools' : 'none' }
    },
  }
}

const left = new Error('left for now')

/** Where the search is: in a claim, a request of it, perhaps one of its variants, and how many devices that has by now. */
interface Position {
  readonly claim: number
  readonly request: number
  readonly variant: number | undefined
  readonly count: number
}

/** 'tooMany': the claim would have more devices than fit into its status. */
type Outcome = 'found' | 'none' | 'tooMany'

interface ClaimWork {
  readonly claim: Frozen<ResourceClaim>
  readonly requests: readonly PreparedRequest[]
  readonly constraints: readonly Constraint[]
  readonly taken: Taken[]
  readonly chosen: number[]
  /** Whether the devices with a value are enough for all that must have it, by constraint and value. */
  readonly groups: Map<string, boolean>
}

interface SearchDeps extends AllocatorDeps {
  /** States from which nothing was found, also by the searches before this one. */
  readonly failed: Set<string>
  readonly matched: Map<string, Map<PoolDevice, boolean>>
  readonly leave: Leave
}

class Search {
  readonly #deps: SearchDeps
  readonly #work: readonly ClaimWork[]
  /** Those of all usable pools, in order. */
  readonly #devices: readonly PoolDevice[]
  /** Device → the claims that get it whole in this search. */
  readonly #whole = new Map<string, Set<number>>()
  readonly #shares = new Map<string, Amounts>()
  readonly #counters: CounterUse
  #steps = 0

  constructor(deps: SearchDeps, claims: readonly Frozen<ResourceClaim>[]) {
    this.#deps = deps
    const afterMatch = () => {
      if (deps.leave.isLate()) throw left
    }
    this.#devices = deps.pools.flatMap((pool) => (pool.state === 'usable' ? pool.devices : []))
    this.#counters = new CounterUse(deps.inUse)
    this.#work = claims.map((claim) => {
      const requests = (claim.spec.devices?.requests ?? []).map((request) => prepareRequest(request, claim, { ...deps, afterMatch }))
      const fewest = requests.reduce((sum, { variants }) => sum + least(variants.map(({ count }) => count)), 0)
      if (fewest > maxDevicesPerClaim)
        throw new Error(`claim ${keyOf(claim)}: number of requested devices ${fewest} exceeds the claim limit of ${maxDevicesPerClaim}`)
      const constraints = (claim.spec.devices?.constraints ?? []).map((one, index) => createConstraint(one, `claim ${keyOf(claim)}, constraint #${index}`))
      return { claim, requests, constraints, taken: [], chosen: [], groups: new Map() }
    })
  }

  run(): boolean {
    return this.#next({ claim: 0, request: 0, variant: undefined, count: 0 }, 0) === 'found'
  }

  solution(): readonly ClaimSolution[] {
    return this.#work.map(({ claim, requests, taken, chosen }) => ({
      claim,
      taken: [...taken],
      chosen: requests.map(({ variants }, index) => variants[chosen[index] ?? 0] as RequestVariant),
    }))
  }

  /** @param from the first device to try: the devices of one request are taken in their order, so that no set of them is tried twice */
  #next(at: Position, from: number): Outcome {
    this.#step()
    const mayForget = this.#steps < stepsBeforeMemory && this.#deps.failed.size === 0
    const key = mayForget ? undefined : this.#stateAt(at, from)
    if (key !== undefined && this.#deps.failed.has(key)) return 'none'
    const outcome = this.#go(at, from)
    // A full memory is still asked: a search that starts over makes progress through it alone.
    if (key !== undefined && outcome === 'none' && this.#deps.failed.size < maxRemembered) this.#deps.failed.add(key)
    return outcome
  }

  #step(): void {
    if (++this.#steps % stepsBetweenLooks === 0 && this.#deps.leave.isOver()) throw left
  }

  /** All that what comes next depends on: which request got which device matters to constraints only. */
  #stateAt(at: Position, from: number): string {
    const claims = this.#work.slice(0, at.claim + 1).map(({ taken, constraints }) => {
      const devices = taken.map(({ device, variant, consumed }) => (consumed || variant.adminAccess ? `${device.id}@${variant.fullName}` : device.id)).sort()
      return `${devices.join()};${constraints.map((constraint) => constraint.state()).join('|')}`
    })
    return `${at.claim}.${at.request}.${at.variant ?? ''}.${at.count}.${from} ${claims.join('/')}`
  }

  #go(at: Position, from: number): Outcome {
    const work = this.#work[at.claim]
    if (!work) return 'found'
    const request = work.requests[at.request]
    if (!request) {
      const outcome = this.#next({ claim: at.claim + 1, request: 0, variant: undefined, count: 0 }, 0)
      // Another choice for this claim may leave devices that let the next one do with fewer.
      return outcome === 'tooMany' ? 'none' : outcome
    }
    if (request.isPrioritized && at.variant === undefined) return this.#firstAvailable(at, work, request)
    const variant = request.variants[at.variant ?? 0] as RequestVariant
    if (variant.all?.length === 0) return 'none'
    if (at.count >= variant.count) return this.#next({ claim: at.claim, request: at.request + 1, variant: undefined, count: 0 }, 0)
    if (work.taken.length + variant.count - at.count > maxDevicesPerClaim) return 'tooMany'
    return variant.all ? this.#takeNamed(at, work, variant, variant.all) : this.#takeAny(at, work, variant, from)
  }

  #firstAvailable(at: Position, work: ClaimWork, { variants }: PreparedRequest): Outcome {
    let allTooMany = true
    for (let variant = 0; variant < variants.length; variant++) {
      const outcome = this.#next({ ...at, variant }, 0)
      if (outcome === 'tooMany') continue
      allTooMany = false
      if (outcome === 'found') {
        work.chosen[at.request] = variant
        return outcome
      }
    }
    return allTooMany ? 'tooMany' : 'none'
  }

  /** Which devices it must be is known; there is one way only. */
  #takeNamed(at: Position, work: ClaimWork, variant: RequestVariant, all: readonly PoolDevice[]): Outcome {
    const device = all[at.count] as PoolDevice
    const undo = this.#take(at, work, variant, device)
    if (!undo) return 'none'
    const outcome = this.#next({ ...at, count: at.count + 1 }, 0)
    if (outcome !== 'found') undo()
    return outcome
  }

  #takeAny(at: Position, work: ClaimWork, variant: RequestVariant, from: number): Outcome {
    for (let index = from; index < this.#devices.length; index++) {
      this.#step()
      const device = this.#devices[index] as PoolDevice
      const undo = this.#take(at, work, variant, device)
      if (!undo) continue
      const outcome = this.#next({ ...at, count: at.count + 1 }, index + 1)
      if (outcome === 'found') return outcome
      undo()
      if (outcome === 'tooMany') return outcome
    }
    return 'none'
  }

  /** @returns how to give it back; undefined: it cannot be taken */
  #take(at: Position, work: ClaimWork, variant: RequestVariant, device: PoolDevice): (() => void) | undefined {
    const { id } = device
    const isShared = device.device.allowMultipleAllocations === true
    if (variant.adminAccess ? this.#whole.get(id)?.has(at.claim) : this.#isInUse(id)) return undefined
    if (!variant.matches(device) || !isTolerated(device, variant)) return undefined
    const consumed = consumedBy(variant.capacity, device.device)
    if (!consumed || !isLeft(consumed, device.device, this.#deps.inUse.shares(id), this.#shares.get(id))) return undefined
    // Whoever shares a device that is in use does not use its counters again.
    const usesCounters = !(isShared && (this.#deps.inUse.shares(id) !== undefined || this.#shares.has(id)))
    if (usesCounters && !this.#counters.take(device)) return undefined
    const added = addToAll(work.constraints, variant.names, device)
    if (added && !this.#isGroupEnough(work, variant, device)) {
      for (const constraint of work.constraints) constraint.remove(variant.names, device)
      if (usesCounters) this.#counters.giveBack(device)
      return undefined
    }
    if (!added) {
      if (usesCounters) this.#counters.giveBack(device)
      if (variant.all)
        throw new Error(`claim ${keyOf(work.claim)}, request ${variant.fullName}: cannot add device ${id} because a claim constraint would not be satisfied`)
      return undefined
    }
    const sharesBefore = this.#shares.get(id)
    if (isShared) this.#shares.set(id, addAmounts(sharesBefore, consumed))
    else this.#whole.set(id, (this.#whole.get(id) ?? new Set()).add(at.claim))
    work.taken.push({ variant, device, consumed: isShared ? consumed : undefined })
    return () => {
      work.taken.pop()
      if (!isShared) this.#whole.get(id)?.delete(at.claim)
      else if (sharesBefore) this.#shares.set(id, sharesBefore)
      else this.#shares.delete(id)
      if (usesCounters) this.#counters.giveBack(device)
      for (const constraint of work.constraints) constraint.remove(variant.names, device)
    }
  }

  /** Counts before it tries: the devices that share a value must be as many as the requests that need one. */
  #isGroupEnough(work: ClaimWork, variant: RequestVariant, device: PoolDevice): boolean {
    return work.constraints.every(({ group }, index) => {
      if (!group?.concerns(variant.names) || variant.all) return true
      const value = group.valueOf(device)
      const key = `${index} ${value}`
      let isEnough = work.groups.get(key)
      if (isEnough === undefined) {
        isEnough = this.#count(
          work,
          (one) => group.concerns(one),
          (one) => group.valueOf(one) === value,
        )
        work.groups.set(key, isEnough)
      }
      return isEnough
    })
  }

  #count({ requests }: ClaimWork, concerns: (names: readonly string[]) => boolean, isInGroup: (device: PoolDevice) => boolean): boolean {
    // A request with alternatives, for all devices or for an administrator follows other rules: it is left out.
    const counted = requests.flatMap(({ variants: [variant], isPrioritized }) =>
      variant && !isPrioritized && !variant.all && !variant.adminAccess && concerns(variant.names) ? [variant] : [],
    )
    const devices = this.#devices.filter((device) => isInGroup(device) && !this.#deps.inUse.has(device.id))
    if (devices.some(({ device }) => device.allowMultipleAllocations)) return true
    const fits = counted.map((variant) => devices.filter((device) => variant.matches(device) && isTolerated(device, variant)))
    const needed = counted.reduce((sum, { count }) => sum + count, 0)
    return new Set(fits.flat()).size >= needed && counted.every(({ count }, index) => (fits[index]?.length ?? 0) >= count)
  }

  #isInUse(id: string): boolean {
    return this.#deps.inUse.has(id) || (this.#whole.get(id)?.size ?? 0) > 0
  }
}

function addToAll(constraints: readonly Constraint[], names: readonly string[], device: PoolDevice): boolean {
  const refusedAt = constraints.findIndex((constraint) => !constraint.add(names, device))
  for (const constraint of constraints.slice(0, Math.max(0, refusedAt))) constraint.remove(names, device)
  return refusedAt < 0
}

function isTolerated({ device }: PoolDevice, { tolerations }: RequestVariant): boolean {
  return (device.taints ?? []).every(
    (taint) =>
      (taint.effect !== 'NoSchedule' && taint.effect !== 'NoExecute') || tolerations.some((toleration) => deviceTolerationToleratesTaint(toleration, taint)),
  )
}
