/**
 * Applies the constant defaults of a schema (L1): `+default` markers of built-in kinds, `default` of CRDs. Computed defaults are the kinds'.
 * As in upstream's generated defaulters, a default is set only inside parts that are present.
 */
import { deepCopy } from '#base/frozen'
import type { Schema } from './schema.ts'

/** Sets the absent fields of `value` that have a default, in place. */
export function applyDefaults(value: unknown, schema: Schema): void {
  if (typeof value !== 'object' || value === null) return
  if (schema.type === 'object' && schema.fields) {
    const object = value as Record<string, unknown>
    for (const [name, field] of schema.fields) {
      if (field.default !== undefined && object[name] === undefined) object[name] = deepCopy(field.default)
      const member = object[name]
      if (typeof member === 'object' && member !== null) applyDefaults(member, field.schema)
    }
  } else if (schema.element && (schema.type === 'array' || schema.type === 'map') && isComposite(schema.element)) {
    for (const member of Object.values(value)) applyDefaults(member, schema.element)
  }
}

function isComposite({ type }: Schema): boolean {
  return type === 'object' || type === 'array' || type === 'map'
}
