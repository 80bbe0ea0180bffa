/**
 * Applies the constant defaults of a schema (L1): `+default` markers of built-in kinds, `default` of CRDs. Computed defaults are the kinds'.
 * As in upstream's generated defaulters, a default is set only inside parts that are present.
 */

import { ownValue } from '#base/bareMap'
import { deepCopy } from '#base/frozen'
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import { type JsonObject, setOwn } from '../machinery/objects.ts'
import { StatusError } from '../machinery/status.ts'
import { perSchema } from './perSchema.ts'
import type { Schema } from './schema.ts'

/** How much JSON defaults may still add to one object, and whether more is refused or left out. */
interface Budget {
  bytes: number
  readonly refuse: boolean
}

/**
 * Sets the absent fields of `value` that have a default, in place. A null where the schema of a CRD allows none counts as absent.
 * @param mostBytes of JSON that defaults may add: a list of empty items can grow to a thousand times its size
 * @returns whether anything was set
 * @throws StatusError RequestEntityTooLarge beyond `mostBytes`
 */
export function applyDefaults(value: unknown, schema: Schema, mostBytes = Number.POSITIVE_INFINITY): boolean {
  return fill(value, schema, { bytes: mostBytes, refuse: true })
}

/** {@link applyDefaults} for what is stored already and must stay readable: defaults that would add more than `mostBytes` are left out. */
export function applyDefaultsWithin(value: unknown, schema: Schema, mostBytes: number): boolean {
  return fill(value, schema, { bytes: mostBytes, refuse: false })
}

function fill(value: unknown, schema: Schema, budget: Budget): boolean {
  if (typeof value !== 'object' || value === null) return false
  const plan = planOf(schema)
  if (plan === nothing) return false
  return plan.fields ? defaultFields(value as Record<string, unknown>, plan.fields, budget) : defaultMembers(value as Record<string, unknown>, plan, budget)
}

function spend(budget: Budget, bytes: number): boolean {
  budget.bytes -= bytes
  if (budget.bytes >= 0) return true
  if (!budget.refuse) return false
  throw new StatusError('RequestEntityTooLarge', 'the object becomes too large with the defaults of its fields')
}

function defaultFields(object: Record<string, unknown>, fields: readonly FieldPlan[], budget: Budget): boolean {
  let changed = false
  for (const { name, schema, fallback, bytes, isDeep } of fields) {
    if (fallback !== undefined && (ownValue(object, name) === undefined || (object[name] === null && !schema.nullable)) && spend(budget, bytes)) {
      setOwn(object as JsonObject, name, deepCopy(fallback))
      changed = true
    }
    if (isDeep && fill(ownValue(object, name), schema, budget)) changed = true
  }
  return changed
}

/** Items of a list, values of a map. */
function defaultMembers(members: Record<string, unknown>, { element, elementDefault, elementBytes = 0 }: Plan, budget: Budget): boolean {
  if (!element) return false
  let changed = false
  for (const key of Object.keys(members)) {
    if (members[key] === null && elementDefault !== undefined && !element.nullable && spend(budget, elementBytes)) {
      members[key] = deepCopy(elementDefault)
      changed = true
    }
    if (fill(members[key], element, budget)) changed = true
  }
  return changed
}

/** What of a schema matters to defaulting: most of most kinds has no defaults at all. */
interface Plan {
  readonly fields?: readonly FieldPlan[]
  readonly element?: Schema
  readonly elementDefault?: unknown
  /** Size of the default's JSON. */
  readonly elementBytes?: number
}

interface FieldPlan {
  readonly name: string
  readonly schema: Schema
  readonly fallback: unknown
  /** Size of the member's JSON. */
  readonly bytes: number
  readonly isDeep: boolean
}

const nothing: Plan = {}
const planOf = perSchema(makePlan)

function makePlan(schema: Schema): Plan {
  if (schema.type === 'object' && schema.fields) {
    const fields = [...schema.fields].map(([name, field]) => {
      const isDeep = holdsDefaults(field.schema, new Set())
      return { name, schema: field.schema, fallback: field.default, bytes: name.length + sizeOf(field.default), isDeep }
    })
    const relevant = fields.filter(({ fallback, isDeep }) => fallback !== undefined || isDeep)
    return relevant.length > 0 ? { fields: relevant } : nothing
  }
  const { element, elementDefault } = schema
  const isList = schema.type === 'array' || schema.type === 'map'
  return isList && element && (elementDefault !== undefined || holdsDefaults(element, new Set()))
    ? { element, elementDefault, elementBytes: sizeOf(elementDefault) }
    : nothing
}

function sizeOf(value: unknown): number {
  return stringifyExactly(value)?.length ?? 0
}

/** Whether there is a default anywhere inside; schemas may refer to themselves. */
function holdsDefaults(schema: Schema, seen: Set<Schema>): boolean {
  if (seen.has(schema)) return false
  seen.add(schema)
  if (schema.type === 'object') {
    for (const field of schema.fields?.values() ?? []) if (field.default !== undefined || holdsDefaults(field.schema, seen)) return true
    return false
  }
  if ((schema.type !== 'array' && schema.type !== 'map') || schema.element === undefined) return false
  return schema.elementDefault !== undefined || holdsDefaults(schema.element, seen)
}
