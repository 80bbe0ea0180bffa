/**
 * Lists of type set and map hold each item once (L1). Upstream: apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go (v1.36).
 */
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import { type FieldError, FieldPath, fieldError } from '../machinery/fieldPath.ts'
import { isObject } from '../machinery/objects.ts'
import type { Schema } from './schema.ts'

/** The duplicates in lists of a custom resource. */
export function validateListTypes(value: unknown, schema: Schema, path = FieldPath.of()): FieldError[] {
  if (Array.isArray(value)) {
    const { element } = schema
    const inside = element ? value.flatMap((item, index) => validateListTypes(item, element, path.index(index))) : []
    return [...duplicates(value, schema, path), ...inside]
  }
  if (!isObject(value)) return []
  const errors: FieldError[] = []
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== 'object' || member === null) continue
    const field = schema.fields?.get(name)?.schema
    if (field && !field.definition) errors.push(...validateListTypes(member, field, path.child(name)))
    else if (!field && schema.type === 'map' && schema.element) errors.push(...validateListTypes(member, schema.element, path.key(name)))
  }
  return errors
}

function duplicates(list: readonly unknown[], schema: Schema, path: FieldPath): FieldError[] {
  if (schema.listType === 'set') return repeated(list).map((index) => fieldError.duplicate(path.index(index), list[index]))
  if (schema.listType !== 'map') return []
  const odd = list.findIndex((item) => item !== null && !isObject(item))
  if (odd >= 0) return [fieldError.invalid(path.index(odd), list[odd], 'must be an object for an array of list-type map')]
  const keys = list.map((item) =>
    Object.fromEntries((schema.listMapKeys ?? []).flatMap((key) => (isObject(item) && Object.hasOwn(item, key) ? [[key, item[key]]] : []))),
  )
  return repeated(keys).map((index) => fieldError.duplicate(path.index(index), keys[index]))
}

/** Where each repeated value appears for the second time. */
function repeated(values: readonly unknown[]): number[] {
  const times = new Map<string, number>()
  const found: number[] = []
  for (const [index, value] of values.entries()) {
    const key = stringifyExactly(value)
    const seen = (times.get(key) ?? 0) + 1
    times.set(key, seen)
    if (seen === 2) found.push(index)
  }
  return found
}
