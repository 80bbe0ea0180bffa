/**
 * The long integers of a value that was read from the store, where no decoder has looked at it (L1): a field of float64 gets a double, and an integer field of
 * a built-in kind must not have one, since components compute with doubles. Free-form parts and custom resources keep them.
 */
import { DecodeError } from './decode.ts'
import type { Schema } from './schema.ts'

/** Changes the value in place. @throws DecodeError naming the integer field */
export function settleLongIntegers(value: unknown, schema: Schema, path = ''): void {
  if (typeof value !== 'object' || value === null) return
  const members = value as Record<string, unknown>
  for (const key of Object.keys(members)) {
    const member = members[key]
    const field = schema.fields?.get(key)?.schema ?? schema.element
    if (!field) continue
    const below = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    if (typeof member !== 'bigint') settleLongIntegers(member, field, below)
    else if (field.type === 'number') members[key] = Number(member)
    else if (field.type === 'integer') throw new DecodeError(`the integer ${member} of ${below} is out of range`)
  }
}
