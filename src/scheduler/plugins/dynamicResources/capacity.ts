/**
 * How much of a device's capacity a request takes (L3), by the device's policy, and whether that much is left.
 * Upstream: dynamic-resource-allocation/structured consumable_capacity.go (v1.36).
 */
import type { CapacityRequestPolicy, Device, DeviceCapacity } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { addQuantities, compareQuantities, parseQuantity, type Quantity, quantityOf, quantityValue } from '#api/machinery/quantity'
import { bareMap, emptyMap, ownValue } from '#base/bareMap'

/** Name of the capacity → amount. */
export type Amounts = Readonly<Record<string, Quantity>>

type Requested = Readonly<Record<string, string>> | undefined

/** What the request takes of the device; undefined: the device does not have such capacities, or not in such portions. */
export function consumedBy(requested: Requested, { capacity = {} }: Frozen<Device>): Amounts | undefined {
  if (Object.keys(requested ?? {}).some((name) => !Object.hasOwn(capacity, name))) return undefined
  const consumed: Record<string, Quantity> = emptyMap()
  for (const [name, one] of Object.entries(capacity)) {
    const amount = portion(ownValue(requested, name), one)
    if (breaks(amount, one.requestPolicy)) return undefined
    consumed[name] = amount
  }
  return consumed
}

/** Whether the device has room for `consumed` in addition to the amounts in `taken`. */
export function isLeft(consumed: Amounts, { capacity = {} }: Frozen<Device>, ...taken: readonly (Amounts | undefined)[]): boolean {
  return Object.entries(consumed).every(([name, amount]) => {
    let sum = amount
    for (const one of taken) if (one?.[name]) sum = addQuantities(sum, one[name])
    return compareQuantities(sum, capacity[name]?.value ?? 0) <= 0
  })
}

export function addAmounts(a: Amounts | undefined, b: Amounts): Amounts {
  const sum: Record<string, Quantity> = bareMap({ ...a })
  for (const [name, amount] of Object.entries(b)) sum[name] = sum[name] ? addQuantities(sum[name], amount) : amount
  return sum
}

/** Rounded up to what the policy offers; without a request its default, or all there is. */
function portion(requested: string | undefined, { value, requestPolicy: policy }: Frozen<DeviceCapacity>): Quantity {
  if (requested === undefined) return parseQuantity(policy?.default ?? value)
  const wanted = parseQuantity(requested)
  if (policy?.validRange) {
    const { min, step } = policy.validRange
    if (compareQuantities(wanted, min) < 0) return parseQuantity(min)
    if (step === undefined) return wanted
    const [from, by] = [quantityValue(min), quantityValue(step)]
    return quantityOf(from + Math.ceil((quantityValue(wanted) - from) / by) * by, 'BinarySI')
  }
  const enough = policy?.validValues?.find((one) => compareQuantities(wanted, one) <= 0)
  return enough === undefined ? wanted : parseQuantity(enough)
}

function breaks(amount: Quantity, policy: Frozen<CapacityRequestPolicy> | undefined): boolean {
  if (!policy || (policy.default !== undefined && compareQuantities(amount, policy.default) === 0)) return false
  if (policy.validRange) {
    const { min, max, step } = policy.validRange
    if (max !== undefined && compareQuantities(amount, max) > 0) return true
    return step !== undefined && (quantityValue(amount) - quantityValue(min)) % quantityValue(step) !== 0
  }
  return policy.validValues !== undefined && policy.validValues.length > 0 && !policy.validValues.some((one) => compareQuantities(one, amount) === 0)
}
