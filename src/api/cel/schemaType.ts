/**
 * The CEL type of a built-in kind (L1), from its compiled schema: what type checking of policies knows of `object`. Fields are typed when an
 * expression first names them, so that kinds that contain themselves are no problem.
 * Upstream: apiserver/pkg/cel/common/schemas.go SchemaDeclType (v1.36).
 */
import { boolType, bytesType, type CelType, doubleType, dynType, intType, listType, mapType, type ObjectType, stringType, timestampType } from '#cel/types'
import type { Schema } from '../schema/schema.ts'
import { escapeIdentifier } from './escaping.ts'

/** @param name the name of an object type; types of nested objects are named by their path below it */
export function celTypeOf(schema: Schema, name: string): CelType {
  switch (schema.type) {
    case 'object':
      return objectOf(schema, name)
    case 'map':
      return mapType(stringType, schema.element ? celTypeOf(schema.element, `${name}.@elem`) : dynType)
    case 'array':
      return listType(schema.element ? celTypeOf(schema.element, `${name}.@idx`) : dynType)
    case 'string':
      return stringTypes[schema.format ?? ''] ?? stringType
    case 'integer':
      return intType
    case 'number':
      return doubleType
    case 'boolean':
      return boolType
    default:
      return dynType
  }
}

const stringTypes: Readonly<Record<string, CelType>> = {
  byte: bytesType,
  'date-time': timestampType,
  'micro-time': timestampType,
  'int-or-string': dynType,
  quantity: dynType,
}

function objectOf({ fields }: Schema, name: string): CelType {
  if (!fields || fields.size === 0) return dynType
  const byIdentifier = new Map([...fields.values()].map((field) => [escapeIdentifier(field.name) ?? field.name, field.schema]))
  const types = new Map<string, CelType>()
  const get = (identifier: string): CelType | undefined => {
    const known = types.get(identifier)
    const schema = byIdentifier.get(identifier)
    if (known || !schema) return known
    const made = celTypeOf(schema, `${name}.${identifier}`)
    types.set(identifier, made)
    return made
  }
  return { kind: 'object', name, fields: { get } } satisfies ObjectType
}
