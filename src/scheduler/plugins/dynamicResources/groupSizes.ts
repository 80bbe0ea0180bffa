/**
 * Counts before a search tries (L3): devices that must share a value must be as many as the requests that need one. Upstream tries all of them.
 */
import type { ClaimWork } from './allocation.ts'
import type { Constraint } from './constraints.ts'
import type { Match } from './deviceMatches.ts'
import type { PoolDevice } from './pools.ts'
import type { RequestVariant } from './requests.ts'

type Group = NonNullable<Constraint['group']>
type IsUsable = (device: PoolDevice, variant: RequestVariant) => Match

export class GroupSizes {
  readonly #free: readonly PoolDevice[]
  readonly #isUsable: IsUsable
  /** By claim, constraint and value. */
  readonly #known = new Map<ClaimWork, Map<string, boolean>>()

  constructor(free: readonly PoolDevice[], isUsable: IsUsable) {
    this.#free = free
    this.#isUsable = isUsable
  }

  /** Whether the devices with the values of `device` are enough, by every constraint; 'later' when time was up: asked again, it continues. */
  areEnough(work: ClaimWork, variant: RequestVariant, device: PoolDevice): Match {
    if (variant.all) return true
    const known = this.#known.get(work) ?? new Map<string, boolean>()
    this.#known.set(work, known)
    for (const [index, { group }] of work.constraints.entries()) {
      if (!group?.concerns(variant.names)) continue
      const value = group.valueOf(device)
      const key = `${index} ${value}`
      const isEnough = known.get(key) ?? this.#count(work, group, value)
      if (isEnough === 'later') return isEnough
      known.set(key, isEnough)
      if (!isEnough) return false
    }
    return true
  }

  #count({ requests }: ClaimWork, group: Group, value: string | undefined): Match {
    // A request with alternatives, for all devices or for an administrator follows other rules: it is left out.
    const counted = requests.flatMap(({ variants: [variant], isPrioritized }) =>
      variant && !isPrioritized && !variant.all && !variant.adminAccess && group.concerns(variant.names) ? [variant] : [],
    )
    const devices = this.#free.filter((device) => group.valueOf(device) === value)
    if (devices.some(({ device }) => device.allowMultipleAllocations)) return true
    const usable = new Set<PoolDevice>()
    for (const variant of counted) {
      let fits = 0
      for (const device of devices) {
        const fitsThis = this.#isUsable(device, variant)
        if (fitsThis === 'later') return fitsThis
        if (!fitsThis) continue
        fits++
        usable.add(device)
      }
      if (fits < variant.count) return false
    }
    return usable.size >= counted.reduce((sum, { count }) => sum + count, 0)
  }
}
