/** Which amounts of a shared device's capacity may be asked for (L1). Upstream: validateRequestPolicy in pkg/apis/resource/validation (v1.36). */
import type { CapacityRequestPolicyRange, DeviceCapacity } from '#api/gen/types/resource.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { addQuantities, canonicalQuantity, compareQuantities, formatQuantity, type QuantityInput, quantityValue } from '#api/machinery/quantity'
import { setFaults } from './deviceRules.ts'

const maxValues = 10

/** The faults of a capacity; a policy makes sense only where a device is `shared` between claims. */
export function capacityFaults({ value, requestPolicy: policy }: DeviceCapacity, shared: boolean, root: FieldPath): FieldError[] {
  if (!policy) return []
  const path = root.child('requestPolicy')
  if (!shared) return [fieldError.forbidden(path, 'allowMultipleAllocations must be true')]
  const { default: chosen, validRange: range, validValues: values = [] } = policy
  if (values.length > 0 && range)
    return [fieldError.forbidden(path, 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time')]
  const field = values.length > 0 ? 'validValues' : range ? 'validRange' : undefined
  if (!field) return []
  if (chosen === undefined) return [fieldError.required(path.child('default'), `required when ${field} is defined`)]
  return range ? rangeFaults(range, chosen, value, path.child(field)) : valuesFaults(values, chosen, value, path.child(field))
}

const isLess = (a: QuantityInput, b: QuantityInput): boolean => compareQuantities(a, b) < 0
const fault = (path: FieldPath, value: QuantityInput, why: string): FieldError => fieldError.invalid(path, canonicalQuantity(value), why)

function valuesFaults(values: readonly QuantityInput[], chosen: QuantityInput, capacity: QuantityInput, path: FieldPath): FieldError[] {
  const unsorted = values.flatMap((value, i) =>
    i > 0 && isLess(value, values[i - 1] ?? value) ? [fault(path.index(i), value, 'values must be sorted in ascending order')] : [],
  )
  const tooLarge = `option is larger than capacity value: ${canonicalQuantity(capacity)}`
  const check = (value: QuantityInput, at: FieldPath) => (isLess(capacity, value) ? [fault(at, value, tooLarge)] : [])
  const errors = [...unsorted, ...setFaults(values, maxValues, check, (value) => String(quantityValue(value)), path)]
  if (!values.some((value) => compareQuantities(value, chosen) === 0))
    errors.push(fault(path, chosen, 'default value is not valid according to the requestPolicy'))
  return errors
}

function rangeFaults({ min, max, step }: CapacityRequestPolicyRange, chosen: QuantityInput, capacity: QuantityInput, path: FieldPath): FieldError[] {
  if (min === undefined) return [fieldError.required(path.child('min'), 'required when validRange is defined')]
  const errors: FieldError[] = []
  const [least, all] = [canonicalQuantity(min), canonicalQuantity(capacity)]
  if (isLess(capacity, min)) errors.push(fault(path.child('min'), min, `min is larger than capacity value: ${all}`))
  if (isLess(chosen, min)) errors.push(fault(path.child('min'), chosen, `default is less than min: ${least}`))
  if (max !== undefined) {
    const [at, most] = [path.child('max'), canonicalQuantity(max)]
    if (isLess(max, min)) errors.push(fault(at, min, `min is larger than max: ${most}`))
    if (isLess(capacity, max)) errors.push(fault(at, max, `max is larger than capacity value: ${all}`))
    if (isLess(max, chosen)) errors.push(fault(at, chosen, `default is more than max: ${most}`))
  }
  if (step === undefined) return errors
  const at = path.child('step')
  const next = addQuantities(min, step)
  if (isLess(capacity, next)) errors.push(fault(at, step, `one step ${formatQuantity(next)} is larger than capacity value: ${all}`))
  for (const value of max === undefined ? [chosen] : [chosen, max])
    if ((quantityValue(value) - quantityValue(min)) % quantityValue(step) !== 0)
      errors.push(fault(at, value, `value is not a multiple of a given step (${canonicalQuantity(step)}) from (${least})`))
  return errors
}
