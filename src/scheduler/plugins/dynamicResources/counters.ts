/**
 * Counters that the devices of a pool share (L3): partitions of one piece of hardware exclude each other by what they use of it.
 * Upstream: structured allocator checkAvailableCounters (v1.36).
 */
import { addQuantities, compareQuantities, parseQuantity, type Quantity, subtractQuantities } from '#api/machinery/quantity'
import type { UsedDevices } from './devicesInUse.ts'
import { deviceId, type Pool, type PoolDevice } from './pools.ts'

/** Counter set and counter → amount. */
type Amounts = Map<string, Quantity>

export class CounterUse {
  readonly #inUse: UsedDevices
  readonly #left = new Map<Pool, Amounts>()

  constructor(inUse: UsedDevices) {
    this.#inUse = inUse
  }

  /** @returns whether there was enough; otherwise nothing is taken */
  take(device: PoolDevice): boolean {
    const used = usedBy(device.device.consumesCounters)
    if (used.length === 0) return true
    const left = this.#leftIn(device.pool)
    if (!used.every(([name, amount]) => compareQuantities(left.get(name) ?? 0, amount) >= 0)) return false
    for (const [name, amount] of used) left.set(name, subtractQuantities(left.get(name) ?? 0, amount))
    return true
  }

  giveBack(device: PoolDevice): void {
    const left = this.#leftIn(device.pool)
    for (const [name, amount] of usedBy(device.device.consumesCounters)) left.set(name, addQuantities(left.get(name) ?? 0, amount))
  }

  #leftIn(pool: Pool): Amounts {
    let left = this.#left.get(pool)
    if (left) return left
    left = new Map()
    for (const { name, counters } of pool.counterSets.values())
      for (const [counter, { value }] of Object.entries(counters)) left.set(`${name}/${counter}`, parseQuantity(value))
    for (const { spec } of pool.everywhere)
      for (const { name, consumesCounters } of spec.devices ?? []) {
        const id = deviceId(pool.driver, pool.name, name)
        if (!consumesCounters || !(this.#inUse.has(id) || this.#inUse.shares(id))) continue
        for (const [counter, amount] of usedBy(consumesCounters)) left.set(counter, subtractQuantities(left.get(counter) ?? 0, amount))
      }
    this.#left.set(pool, left)
    return left
  }
}

function usedBy(consumesCounters: PoolDevice['device']['consumesCounters']): readonly (readonly [string, Quantity])[] {
  return (consumesCounters ?? []).flatMap(({ counterSet, counters }) =>
    Object.entries(counters).map(([name, { value }]) => [`${counterSet}/${name}`, parseQuantity(value)] as const),
  )
}
