/**
 * Reading fields and items of values (L1, pure), plain, optional and as presence tests.
 * Through an optional everything read is optional again. Upstream: cel-go interpreter/attributes.go (v0.26).
 */
import { describe } from '../text.ts'
import type { Value } from '../values.ts'
import { Double, EvaluationError, ListValue, MapValue, ObjectValue, Optional, Uint } from '../values.ts'
import { noSuchOverload } from './frame.ts'

const noSuchKey = (key: Value): EvaluationError => new EvaluationError(`no such key: ${describe(key)}`)

/** The field, or undefined when it is not set. @throws EvaluationError for a value without fields. */
function findField(value: Value, field: string): Value | undefined {
  if (value instanceof ObjectValue || value instanceof MapValue) return value.get(field)
  throw noSuchOverload()
}

/** `value.field`. @throws EvaluationError when it is not set. */
export function select(value: Value, field: string): Value {
  if (value instanceof Optional) return value.value === undefined ? value : optional(findField(value.value, field))
  const found = findField(value, field)
  if (found === undefined) throw noSuchKey(field)
  return found
}

/** `value.?field` */
export function optionalSelect(value: Value, field: string): Value {
  const inner = value instanceof Optional ? value.value : value
  return inner === undefined ? Optional.none : optional(findField(inner, field))
}

/** `has(value.field)` */
export function isSet(value: Value, field: string): boolean {
  const inner = value instanceof Optional ? value.value : value
  return inner !== undefined && findField(inner, field) !== undefined
}

const optional = (value: Value | undefined): Optional => (value === undefined ? Optional.none : new Optional(value))

/** A list index as a number: ints, and uints and doubles that are whole. @throws EvaluationError for anything else. */
function listIndex(key: Value): number {
  if (typeof key === 'number') return key
  if (typeof key === 'bigint') return Number(key)
  if (key instanceof Uint) return Number(key.value)
  if (!(key instanceof Double)) throw noSuchOverload()
  if (!Number.isInteger(key.value)) throw new EvaluationError(`unsupported index value: ${describe(key)}`)
  return key.value
}

/** The item or entry, or undefined when there is none. */
function find(value: Value, key: Value): Value | undefined {
  if (value instanceof ListValue) {
    const index = listIndex(key)
    return index >= 0 && index < value.size ? value.at(index) : undefined
  }
  if (value instanceof MapValue) return value.get(key)
  if (value instanceof ObjectValue && typeof key === 'string') return value.get(key)
  throw noSuchOverload()
}

/** `value[key]`. @throws EvaluationError when there is no such item. */
export function index(value: Value, key: Value): Value {
  if (value instanceof Optional) return value.value === undefined ? value : optional(find(value.value, key))
  const found = find(value, key)
  if (found !== undefined) return found
  throw value instanceof ListValue ? new EvaluationError(`index out of bounds: ${describe(key)}`) : noSuchKey(key)
}

/** `value[?key]` */
export function optionalIndex(value: Value, key: Value): Value {
  const inner = value instanceof Optional ? value.value : value
  return inner === undefined ? Optional.none : optional(find(inner, key))
}
