/**
 * Equality and order of values (L1, pure). Numbers compare across int, uint and double by their mathematical value.
 * Upstream: cel-go common/types, the Equal and Compare methods (v0.26).
 */
import type { Value } from './values.ts'
import { Double, Duration, EvaluationError, isInt, ListValue, MapValue, ObjectValue, OpaqueValue, Optional, Timestamp, TypeValue, Uint } from './values.ts'

/** The number that a numeric value stands for. */
function numeric(value: Value): number | bigint | undefined {
  if (isInt(value)) return value
  if (value instanceof Double || value instanceof Uint) return value.value
  return undefined
}

/** Integers compare exactly; next to a double an integer is rounded to one first, as upstream does. */
function compareNumbers(a: Value, b: Value, left: number | bigint, right: number | bigint): number {
  const rounded = a instanceof Double || b instanceof Double
  const [x, y] = rounded ? [Number(left), Number(right)] : [left, right]
  // NaN is neither below nor equal.
  return x < y ? -1 : x > y ? 1 : Number.isNaN(x) || Number.isNaN(y) ? Number.NaN : 0
}

/** CEL's `==`: values of different kinds are unequal, never an error. */
export function equal(a: Value, b: Value): boolean {
  if (typeof a === 'string' || typeof a === 'boolean' || a === null) return a === b
  if (typeof a === 'number' && typeof b === 'number') return a === b
  const [left, right] = [numeric(a), numeric(b)]
  if (left !== undefined) return right !== undefined && compareNumbers(a, b, left, right) === 0
  if (a instanceof ListValue) return b instanceof ListValue && equalLists(a, b)
  if (a instanceof MapValue) return b instanceof MapValue && equalMaps(a, b)
  if (a instanceof ObjectValue) return b instanceof ObjectValue && equalObjects(a, b)
  if (a instanceof OpaqueValue) return b instanceof OpaqueValue && a.typeName === b.typeName && a.equals(b)
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0
  if (a instanceof Timestamp) return b instanceof Timestamp && a.seconds === b.seconds && a.nanos === b.nanos
  if (a instanceof Duration) return b instanceof Duration && a.nanos === b.nanos
  if (a instanceof TypeValue) return b instanceof TypeValue && a.name === b.name
  if (!(a instanceof Optional && b instanceof Optional)) return false
  return a.value === undefined || b.value === undefined ? a.value === b.value : equal(a.value, b.value)
}

function equalLists(a: ListValue, b: ListValue): boolean {
  if (a.equals) return a.equals(b)
  if (b.equals) return b.equals(a)
  if (a.size !== b.size) return false
  for (let i = 0; i < a.size; i++) if (!equal(a.at(i), b.at(i))) return false
  return true
}

function equalMaps(a: MapValue, b: MapValue): boolean {
  if (a.equals) return a.equals(b)
  if (b.equals) return b.equals(a)
  if (a.size !== b.size) return false
  for (const key of a.keys()) {
    const other = b.get(key)
    if (other === undefined || !equal(a.get(key)!, other)) return false
  }
  return true
}

function equalObjects(a: ObjectValue, b: ObjectValue): boolean {
  if (a.typeName !== b.typeName) return false
  let fields = 0
  for (const name of a.fieldNames()) {
    const other = b.get(name)
    if (other === undefined || !equal(a.get(name)!, other)) return false
    fields += 1
  }
  for (const _ of b.fieldNames()) fields -= 1
  return fields === 0
}

/** Whether a list holds a value equal to this one. */
export function listContains(list: ListValue, value: Value): boolean {
  for (let i = 0; i < list.size; i++) if (equal(list.at(i), value)) return true
  return false
}

/** By code points, as Go compares strings by their UTF-8; JavaScript's own order differs where surrogates meet U+E000 and above. */
export function compareStrings(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** A code unit's place in code point order: surrogates stand for what is above all others. */
const rank = (unit: number): number => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800)

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}

/** Below, equal (0) or above; undefined for values that have no order together. @throws EvaluationError for NaN. */
export function compare(a: Value, b: Value): number | undefined {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'string') return typeof b === 'string' ? compareStrings(a, b) : undefined
  const [left, right] = [numeric(a), numeric(b)]
  if (left !== undefined) {
    if (right === undefined) return undefined
    const order = compareNumbers(a, b, left, right)
    if (Number.isNaN(order)) throw new EvaluationError('NaN values cannot be ordered')
    return order
  }
  if (typeof a === 'boolean') return typeof b === 'boolean' ? Number(a) - Number(b) : undefined
  if (a instanceof Timestamp) return b instanceof Timestamp ? a.seconds - b.seconds || a.nanos - b.nanos : undefined
  if (a instanceof Duration) return b instanceof Duration ? Number(a.nanos > b.nanos) - Number(a.nanos < b.nanos) : undefined
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? compareBytes(a, b) : undefined
  return undefined
}
