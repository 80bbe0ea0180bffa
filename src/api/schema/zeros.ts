/**
 * Go's zero values (L1): what stands in a struct for a field that a client left out, when the field is neither a pointer nor ever omitted;
 * a field that is omitted when empty, on the other hand, is the same left out and sent empty. Rules of kinds so never meet an absent required
 * text, number or struct, nor an empty list of a field that may be absent. Lists, maps, times and bytes stay absent: their zero is null in JSON.
 * Upstream: the struct tags of k8s.io/api (v1.36). CRDs have no zeros: there absent is absent.
 */
import type { Field, Schema, ZeroField } from './schema.ts'

/** Go keeps a null entry of a list or map as the element's zero value. */
export function zeroOf(schema: Schema): unknown {
  if (schema.format === 'date-time' || schema.format === 'micro-time') return null
  switch (schema.type) {
    case 'object':
      return fillZeros({}, schema)
    case 'map':
      return {}
    case 'array':
      return []
    case 'any':
      return null
    default:
      return zeroScalar(schema)
  }
}

function zeroScalar({ type, format }: Schema): string | number | boolean {
  if (type === 'integer' || type === 'number' || format === 'int-or-string') return 0
  if (type === 'boolean') return false
  return format === 'quantity' ? '0' : ''
}

/** Whether Go leaves such a value of a field out: it is the zero one, or a list or map without members, and the field is omitted when empty. */
export function isOmitted(value: unknown, { schema, pointer, alwaysPresent }: Field): boolean {
  if (pointer || alwaysPresent) return false
  if (typeof value !== 'object') return value === '' || value === 0 || value === false
  if (Array.isArray(value)) return value.length === 0 && schema.type === 'array'
  if (schema.type !== 'map' || value === null) return false
  for (const _ in value) return false
  return true
}

/** Sets what `object` lacks of the fields that upstream always has. Changes it in place and returns it. */
export function fillZeros(object: Record<string, unknown>, { zeros }: Schema): Record<string, unknown> {
  if (zeros === undefined) return object
  for (const { name, scalar, struct } of zeros) if (object[name] === undefined) object[name] = struct === undefined ? scalar : fillZeros({}, struct)
  return object
}

/** The zeros of a struct's fields; undefined when there are none. */
export function zerosOf(fields: ReadonlyMap<string, Field>): readonly ZeroField[] | undefined {
  const zeros: ZeroField[] = []
  for (const { name, schema, alwaysPresent } of fields.values()) {
    if (!alwaysPresent || !hasZero(schema)) continue
    zeros.push(schema.type === 'object' ? { name, scalar: '', struct: schema } : { name, scalar: zeroScalar(schema) })
  }
  return zeros.length > 0 ? zeros : undefined
}

/** Whether Go writes the zero of such a value as something else than null. */
export function hasZero({ type, format }: Schema): boolean {
  if (type === 'array' || type === 'map' || type === 'any') return false
  return format !== 'byte' && format !== 'date-time' && format !== 'micro-time'
}
