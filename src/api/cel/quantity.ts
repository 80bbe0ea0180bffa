/**
 * CEL's library for resource quantities (L1). Upstream: apiserver/pkg/cel/library/quantity.go, pkg/cel/quantity.go (v1.36).
 */
import type { Library } from '#cel/declarations'
import { declare, member, overload } from '#cel/declarations'
import { opaqueType } from '#cel/types'
import type { CelInt } from '#cel/values'
import { Double, EvaluationError, int, maxInt, minInt, OpaqueValue } from '#cel/values'
import type { Quantity } from '../machinery/quantity.ts'
import {
  addQuantities,
  compareQuantities,
  isQuantity,
  parseQuantity,
  QuantityError,
  quantityAsNumber,
  quantityOf,
  quantitySign,
  subtractQuantities,
} from '../machinery/quantity.ts'

export class QuantityValue extends OpaqueValue {
  readonly typeName = 'kubernetes.Quantity'
  readonly quantity: Quantity

  constructor(quantity: Quantity) {
    super()
    this.quantity = quantity
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof QuantityValue && compareQuantities(this.quantity, other.quantity) === 0
  }
}

function toQuantity(text: string): QuantityValue {
  try {
    return new QuantityValue(parseQuantity(text))
  } catch (error) {
    if (error instanceof QuantityError) throw new EvaluationError(error.message)
    throw error
  }
}

/** The whole number that the quantity is; undefined with a fraction, or beyond 64 bits. */
function wholeNumber({ quantity }: QuantityValue): CelInt | undefined {
  const units = BigInt(quantity.units)
  if (quantity.scale >= 0) {
    // More digits than 64 bits hold need no multiplication to be refused.
    if (quantity.scale > 19 && units !== 0n) return undefined
    const value = units * 10n ** BigInt(quantity.scale)
    return value < minInt || value > maxInt ? undefined : int(value)
  }
  const divisor = 10n ** BigInt(-quantity.scale)
  const value = units / divisor
  return units % divisor !== 0n || value < minInt || value > maxInt ? undefined : int(value)
}

function asInteger(value: QuantityValue): CelInt {
  const whole = wholeNumber(value)
  if (whole === undefined) throw new EvaluationError('cannot convert value to integer')
  return whole
}

const compared = (a: QuantityValue, b: QuantityValue): number => compareQuantities(a.quantity, b.quantity)
const ofInt = (value: CelInt): Quantity => quantityOf(value, 'DecimalExponent')

const type = 'kubernetes.Quantity'
const pair = `(${type}, ${type})`

export const quantityLibrary: Library = {
  typeNames: [opaqueType(type)],
  functions: [
    declare('quantity', overload('string_to_quantity', `(string) -> ${type}`, toQuantity)),
    declare(
      'isQuantity',
      overload('is_quantity_string', '(string) -> bool', (text: string) => isQuantity(text)),
    ),
    declare(
      'sign',
      overload('quantity_sign', `(${type}) -> int`, ({ quantity }: QuantityValue) => quantitySign(quantity)),
    ),
    declare(
      'isGreaterThan',
      member('quantity_is_greater_than', `${pair} -> bool`, (a: QuantityValue, b: QuantityValue) => compared(a, b) > 0),
    ),
    declare(
      'isLessThan',
      member('quantity_is_less_than', `${pair} -> bool`, (a: QuantityValue, b: QuantityValue) => compared(a, b) < 0),
    ),
    declare('compareTo', member('quantity_compare_to', `${pair} -> int`, compared)),
    declare(
      'asApproximateFloat',
      member('quantity_get_float', `(${type}) -> double`, ({ quantity }: QuantityValue) => new Double(quantityAsNumber(quantity))),
    ),
    declare('asInteger', member('quantity_get_int', `(${type}) -> int`, asInteger)),
    declare(
      'isInteger',
      member('quantity_is_integer', `(${type}) -> bool`, (value: QuantityValue) => wholeNumber(value) !== undefined),
    ),
    declare(
      'add',
      member('quantity_add', `${pair} -> ${type}`, (a: QuantityValue, b: QuantityValue) => new QuantityValue(addQuantities(a.quantity, b.quantity))),
      member('quantity_add_int', `(${type}, int) -> ${type}`, (a: QuantityValue, b: CelInt) => new QuantityValue(addQuantities(a.quantity, ofInt(b)))),
    ),
    declare(
      'sub',
      member('quantity_sub', `${pair} -> ${type}`, (a: QuantityValue, b: QuantityValue) => new QuantityValue(subtractQuantities(a.quantity, b.quantity))),
      member('quantity_sub_int', `(${type}, int) -> ${type}`, (a: QuantityValue, b: CelInt) => new QuantityValue(subtractQuantities(a.quantity, ofInt(b)))),
    ),
  ],
}
