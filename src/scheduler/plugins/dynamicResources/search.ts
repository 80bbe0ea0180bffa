/**
 * The search for devices (L3): every request in turn takes the first device that is free, matches and keeps the constraints, and the search goes back where
 * a later one finds none. The first complete solution wins; nothing is scored. It keeps a stack of its own, so that it can be left and taken up again.
 * Upstream: dynamic-resource-allocation/structured allocateOne (v1.36).
 */
import { deviceTolerationToleratesTaint } from '#api/helpers/deviceTaints'
import { keyOf } from '#api/machinery/meta'
import type { AllocatorDeps, ClaimSolution, ClaimWork, Leave } from './allocation.ts'
import { Candidates, canFill, type Slot } from './candidates.ts'
import type { Constraint } from './constraints.ts'
import type { Match } from './deviceMatches.ts'
import { DeviceUse } from './deviceUse.ts'
import { FailedStates } from './failedStates.ts'
import { GroupSizes } from './groupSizes.ts'
import type { PoolDevice } from './pools.ts'
import type { PreparedRequest, RequestVariant } from './requests.ts'

export const maxDevicesPerClaim = 32
const stepsBetweenLooks = 256
/** A search that is this long remembers what has failed, and looks ahead. */
const stepsBeforeCare = 1000
const memoryBytes = 16 * 2 ** 20
/** Missing devices that are looked for ahead, at most. */
const maxSlots = 64

/** Where the search is: in a claim, a request of it, perhaps one of its variants, and how many devices that has by now. */
interface Position {
  readonly claim: number
  readonly request: number
  readonly variant: number | undefined
  readonly count: number
  /** The first device to try: the devices of one request are taken in their order, so that no set of them is tried twice. */
  readonly from: number
}

/** 'tooMany': the claim would have more devices than fit into its status. */
type Outcome = 'found' | 'none' | 'tooMany'

interface Frame {
  readonly at: Position
  /** Absent while the search is short. */
  readonly state: string | undefined
  /** The next device or variant to try. */
  next: number
  /** Gives back what was taken for the position below. */
  undo: (() => void) | undefined
  allTooMany: boolean
}

/** An outcome ends the frame; a position is tried below it; 'later' leaves the search there. */
type Move = Outcome | Position | 'later'

const start: Position = { claim: 0, request: 0, variant: undefined, count: 0, from: 0 }

export class Search {
  readonly #work: readonly ClaimWork[]
  /** Devices of all usable pools, in order. */
  readonly #devices: readonly PoolDevice[]
  readonly #use: DeviceUse
  readonly #failed = new FailedStates(memoryBytes)
  readonly #groups: GroupSizes
  readonly #candidates: Candidates
  readonly #stack: Frame[] = []
  #below: Outcome | undefined
  #leave: Leave | undefined
  #steps = 0

  constructor(deps: AllocatorDeps, work: readonly ClaimWork[]) {
    this.#work = work
    this.#devices = deps.pools.flatMap((pool) => (pool.state === 'usable' ? pool.devices : []))
    this.#use = new DeviceUse(deps.inUse)
    const free = this.#devices.filter(({ id }) => !deps.inUse.has(id))
    this.#groups = new GroupSizes(free, isUsable)
    this.#candidates = new Candidates(this.#devices, (device, variant) => (deps.inUse.has(device.id) ? false : isUsable(device, variant)))
    this.#enter(start)
  }

  /**
   * @returns whether there is a solution; undefined when it was left
   * @throws Error when a claim or class is at fault
   */
  run(leave: Leave): boolean | undefined {
    this.#leave = leave
    for (let frame = this.#stack.at(-1); frame; frame = this.#stack.at(-1)) {
      if (this.#step()) return undefined
      const stepsBefore = this.#steps
      const { next } = frame
      const move = this.#move(frame, this.#below)
      if (move === 'later') {
        // A step that is repeated counts once: selectors that take long are no reason to look ahead, which evaluates more of them.
        this.#steps = stepsBefore - 1 + frame.next - next
        this.#below = undefined
        return undefined
      }
      if (typeof move === 'string') this.#end(frame, move)
      else {
        this.#below = undefined
        this.#enter(move)
      }
    }
    return this.#below === 'found'
  }

  solution(): readonly ClaimSolution[] {
    return this.#work.map(({ claim, requests, taken, chosen }) => ({
      claim,
      taken: [...taken],
      chosen: requests.map(({ variants }, index) => variants[chosen[index] ?? 0] as RequestVariant),
    }))
  }

  /** @returns whether to leave now */
  #step(): boolean {
    return ++this.#steps % stepsBetweenLooks === 0 && this.#leave?.isOver() === true
  }

  #enter(at: Position): void {
    const state = this.#steps < stepsBeforeCare ? undefined : this.#stateAt(at)
    if (state !== undefined && this.#failed.has(state)) this.#below = 'none'
    else this.#stack.push({ at, state, next: at.from, undo: undefined, allTooMany: true })
  }

  #end({ state }: Frame, outcome: Outcome): void {
    this.#stack.pop()
    if (state !== undefined && outcome === 'none') this.#failed.add(state)
    this.#below = outcome
  }

  /** All that what comes next depends on: which request got which device matters to constraints only. */
  #stateAt(at: Position): string {
    const claims = this.#work.slice(0, at.claim + 1).map(({ taken, constraints }) => {
      const devices = taken.map(({ device, variant, consumed }) => (consumed || variant.adminAccess ? `${device.id}@${variant.fullName}` : device.id)).sort()
      return `${devices.join()};${constraints.map((constraint) => constraint.state()).join('|')}`
    })
    return `${at.claim}.${at.request}.${at.variant ?? ''}.${at.count}.${at.from} ${claims.join('/')}`
  }

  /** @param below result of the next position; undefined when it was not tried yet */
  #move(frame: Frame, below: Outcome | undefined): Move {
    const { at } = frame
    const work = this.#work[at.claim]
    if (!work) return 'found'
    const request = work.requests[at.request]
    // Another choice for this claim may leave devices that let the next one do with fewer.
    if (!request) return below === 'tooMany' ? 'none' : (below ?? { ...start, claim: at.claim + 1 })
    if (request.isPrioritized && at.variant === undefined) return this.#firstAvailable(frame, work, request, below)
    const variant = request.variants[at.variant ?? 0] as RequestVariant
    if (variant.all?.length === 0) return 'none'
    if (at.count >= variant.count) return below ?? { ...start, claim: at.claim, request: at.request + 1 }
    if (below !== undefined) {
      if (below === 'found') return below
      frame.undo?.()
      frame.undo = undefined
      if (variant.all || below === 'tooMany') return below
    }
    if (work.taken.length + variant.count - at.count > maxDevicesPerClaim) return 'tooMany'
    return variant.all ? this.#takeNamed(frame, work, variant, variant.all) : this.#takeAny(frame, work, variant)
  }

  #firstAvailable(frame: Frame, work: ClaimWork, { variants }: PreparedRequest, below: Outcome | undefined): Move {
    if (below === 'found') {
      work.chosen[frame.at.request] = frame.next - 1
      return below
    }
    if (below === 'none') frame.allTooMany = false
    if (frame.next < variants.length) return { ...frame.at, variant: frame.next++, from: 0 }
    return frame.allTooMany ? 'tooMany' : 'none'
  }

  /** Which devices it must be is known; there is one way only. */
  #takeNamed(frame: Frame, work: ClaimWork, variant: RequestVariant, all: readonly PoolDevice[]): Move {
    const { at } = frame
    const undo = this.#take(at, work, variant, all[at.count] as PoolDevice)
    if (typeof undo !== 'function') return undo
    frame.undo = undo
    return { ...at, count: at.count + 1, from: 0 }
  }

  #takeAny(frame: Frame, work: ClaimWork, variant: RequestVariant): Move {
    const { at } = frame
    while (frame.next < this.#devices.length) {
      if (this.#step()) return 'later'
      const index = frame.next
      const undo = this.#take(at, work, variant, this.#devices[index] as PoolDevice)
      if (undo === 'later') return undo
      frame.next = index + 1
      if (undo === 'none') continue
      const below = { ...at, count: at.count + 1, from: index + 1 }
      const isHopeful = this.#steps < stepsBeforeCare || this.#isEnoughFor(below, variant)
      if (isHopeful === true) {
        frame.undo = undo
        return below
      }
      undo()
      if (isHopeful === 'later') {
        frame.next = index
        return isHopeful
      }
    }
    return 'none'
  }

  /** @returns how to give it back */
  #take(at: Position, work: ClaimWork, variant: RequestVariant, device: PoolDevice): (() => void) | 'none' | 'later' {
    if (this.#use.isBarred(device.id, at.claim, variant)) return 'none'
    const canUse = isUsable(device, variant)
    if (canUse === 'later') return canUse
    if (!canUse) return 'none'
    const use = this.#use.take(device, at.claim, variant)
    if (!use) return 'none'
    if (!addToAll(work.constraints, variant.names, device)) {
      if (variant.all)
        throw new Error(
          `claim ${keyOf(work.claim)}, request ${variant.fullName}: cannot add device ${device.id} because a claim constraint would not be satisfied`,
        )
      use.undo()
      return 'none'
    }
    work.taken.push({ variant, device, consumed: use.consumed })
    const undo = () => {
      work.taken.pop()
      for (const constraint of work.constraints) constraint.remove(variant.names, device)
      use.undo()
    }
    const isGroupEnough = this.#groups.areEnough(work, variant, device)
    if (isGroupEnough === true) return undo
    undo()
    return isGroupEnough === 'later' ? 'later' : 'none'
  }

  /** Whether the free devices are enough for the missing ones of this request and of those that follow, each request for itself. */
  #isEnoughFor(at: Position, variant: RequestVariant): boolean | 'later' {
    const slots: Slot[] = []
    const add = (variant: RequestVariant, missing: number, from: number): boolean => {
      // Other rules hold for administrators, and `All` has no choice.
      if (missing <= 0 || variant.adminAccess || variant.all) return true
      const candidates = this.#candidates.of(variant)
      if (!candidates) return false
      // A device that can be shared may do for all of them.
      if (candidates.some((index) => this.#devices[index]?.device.allowMultipleAllocations)) return true
      const slot = from > 0 ? candidates.filter((index) => index >= from) : candidates
      for (let count = 0; count < missing && slots.length < maxSlots; count++) slots.push(slot)
      return true
    }
    if (!add(variant, variant.count - at.count, at.from)) return 'later'
    for (let claim = at.claim; claim < this.#work.length && slots.length < maxSlots; claim++) {
      const { requests } = this.#work[claim] as ClaimWork
      for (const { variants, isPrioritized } of requests.slice(claim === at.claim ? at.request + 1 : 0)) {
        const [only] = variants
        if (only && !isPrioritized && !add(only, only.count, 0)) return 'later'
      }
    }
    return canFill(slots, (index) => !this.#use.has(this.#devices[index]?.id ?? ''))
  }
}

function addToAll(constraints: readonly Constraint[], names: readonly string[], device: PoolDevice): boolean {
  const refusedAt = constraints.findIndex((constraint) => !constraint.add(names, device))
  for (const constraint of constraints.slice(0, Math.max(0, refusedAt))) constraint.remove(names, device)
  return refusedAt < 0
}

function isUsable(device: PoolDevice, variant: RequestVariant): Match {
  const isMatch = variant.matches(device)
  return isMatch === true ? isTolerated(device, variant) : isMatch
}

function isTolerated({ device }: PoolDevice, { tolerations }: RequestVariant): boolean {
  return (device.taints ?? []).every(
    (taint) =>
      (taint.effect !== 'NoSchedule' && taint.effect !== 'NoExecute') || tolerations.some((toleration) => deviceTolerationToleratesTaint(toleration, taint)),
  )
}
