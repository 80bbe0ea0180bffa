/** Schemas of configuration kinds, declared with one line per field (L1): no OpenAPI document has these kinds, so they cannot be generated. */
import type { Field, Schema } from '#api/schema/schema'

export const text: Schema = { type: 'string' }
export const boolean: Schema = { type: 'boolean' }
export const integer: Schema = { type: 'integer', format: 'int32' }
/** Left as it is: what another decoder reads. */
export const anything: Schema = { type: 'any' }

export const list = (element: Schema): Schema => ({ type: 'array', element })
export const map = (element: Schema): Schema => ({ type: 'map', element })

/** @param name the struct's, for the decoder's texts: `Issuer` */
export function struct(name: string, fields: Readonly<Record<string, Schema>>): Schema {
  const entries = Object.entries(fields).map(([field, schema]): [string, Field] => [field, { name: field, schema, required: false }])
  return { type: 'object', definition: name, fields: new Map(entries) }
}

/** A kind: a struct with its apiVersion and kind. */
export function kind(name: string, fields: Readonly<Record<string, Schema>>): Schema {
  return struct(name, { apiVersion: text, kind: text, ...fields })
}
