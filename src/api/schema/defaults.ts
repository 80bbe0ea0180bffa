/**
 * Applies the constant defaults of a schema (L1): `+default` markers of built-in kinds, `default` of CRDs. Computed defaults are the kinds'.
 * As in upstream's generated defaulters, a default is set only inside parts that are present.
 */
import { deepCopy } from '#base/frozen'
import type { Schema } from './schema.ts'

/** Sets the absent fields of `value` that have a default, in place. */
export function applyDefaults(value: unknown, schema: Schema): void {
  if (typeof value !== 'object' || value === null) return
  const plan = planOf(schema)
  if (plan === nothing) return
  if (plan.fields) {
    const object = value as Record<string, unknown>
    for (const { name, schema: inner, fallback, isDeep } of plan.fields) {
      if (fallback !== undefined && object[name] === undefined) object[name] = deepCopy(fallback)
      if (isDeep) applyDefaults(object[name], inner)
    }
  } else if (plan.element) {
    for (const member of Object.values(value)) applyDefaults(member, plan.element)
  }
}

/** What of a schema matters to defaulting: most of most kinds has no defaults at all. */
interface Plan {
  readonly fields?: readonly { readonly name: string; readonly schema: Schema; readonly fallback: unknown; readonly isDeep: boolean }[]
  readonly element?: Schema
}

const nothing: Plan = {}
const plans = new WeakMap<Schema, Plan>()

function planOf(schema: Schema): Plan {
  let plan = plans.get(schema)
  if (!plan) {
    plan = makePlan(schema)
    plans.set(schema, plan)
  }
  return plan
}

function makePlan(schema: Schema): Plan {
  if (schema.type === 'object' && schema.fields) {
    const fields = [...schema.fields].map(([name, field]) => {
      const isDeep = holdsDefaults(field.schema, new Set())
      return { name, schema: field.schema, fallback: field.default, isDeep }
    })
    const relevant = fields.filter(({ fallback, isDeep }) => fallback !== undefined || isDeep)
    return relevant.length > 0 ? { fields: relevant } : nothing
  }
  const isList = schema.type === 'array' || schema.type === 'map'
  return isList && schema.element && holdsDefaults(schema.element, new Set()) ? { element: schema.element } : nothing
}

/** Whether there is a default anywhere inside; schemas may refer to themselves. */
function holdsDefaults(schema: Schema, seen: Set<Schema>): boolean {
  if (seen.has(schema)) return false
  seen.add(schema)
  if (schema.type === 'object') {
    for (const field of schema.fields?.values() ?? []) if (field.default !== undefined || holdsDefaults(field.schema, seen)) return true
    return false
  }
  return (schema.type === 'array' || schema.type === 'map') && schema.element !== undefined && holdsDefaults(schema.element, seen)
}
