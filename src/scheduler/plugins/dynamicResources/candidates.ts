/**
 * Looks ahead in a search for devices (L3): whether the free devices are enough for the remaining requests. A necessary condition, which
 * ends a branch early; upstream tries every combination of the branch, with the same result.
 */
import type { Match } from './deviceMatches.ts'
import type { PoolDevice } from './pools.ts'
import type { RequestVariant } from './requests.ts'

/** Devices that one of the missing ones may be, by index, in order. */
export type Slot = readonly number[]

/** What a request may take, found device by device, because selectors may take long. */
export class Candidates {
  readonly #devices: readonly PoolDevice[]
  readonly #isUsable: (device: PoolDevice, variant: RequestVariant) => Match
  readonly #known = new Map<RequestVariant, { readonly indices: number[]; asked: number }>()

  constructor(devices: readonly PoolDevice[], isUsable: (device: PoolDevice, variant: RequestVariant) => Match) {
    this.#devices = devices
    this.#isUsable = isUsable
  }

  /** @returns undefined when time was up; asked again, it continues */
  of(variant: RequestVariant): Slot | undefined {
    let known = this.#known.get(variant)
    if (!known) {
      known = { indices: [], asked: 0 }
      this.#known.set(variant, known)
    }
    while (known.asked < this.#devices.length) {
      const mayTake = this.#mayTake(known.asked, variant)
      if (mayTake === 'later') return undefined
      if (mayTake) known.indices.push(known.asked)
      known.asked++
    }
    return known.indices
  }

  /** A selector that fails ends the search only where the search itself asks it: upstream may find devices without it. */
  #mayTake(index: number, variant: RequestVariant): Match {
    try {
      return this.#isUsable(this.#devices[index] as PoolDevice, variant)
    } catch {
      return true
    }
  }
}

/** Whether each slot can get a different free device (a bipartite matching). */
export function canFill(slots: readonly Slot[], isFree: (device: number) => boolean): boolean {
  const holders = new Map<number, number>()
  const place = (slot: number, seen?: Set<number>): boolean => {
    const candidates = slots[slot] ?? []
    const free = candidates.find((device) => !holders.has(device) && isFree(device))
    if (free !== undefined) {
      holders.set(free, slot)
      return true
    }
    const tried = seen ?? new Set()
    for (const device of candidates) {
      const holder = holders.get(device)
      if (holder === undefined || tried.has(device)) continue
      tried.add(device)
      if (!place(holder, tried)) continue
      holders.set(device, slot)
      return true
    }
    return false
  }
  return slots.every((_slot, index) => place(index))
}
