/**
 * How a definition travels in protobuf (L1): its fields by number, with the messages that JSON shows inline. Made once per schema.
 * Upstream: the generated.proto files of the API; ../../schema/schema.ts carries their numbers.
 */
import type { Field, Schema } from '../schema/schema.ts'

/** A JSON field, or a message whose fields belong to the same JSON object. */
export type PlanEntry = { readonly number: number; readonly field: Field } | { readonly number: number; readonly inline: Plan }

export interface Plan {
  /** By ascending number, which is the order on the wire. */
  readonly entries: readonly PlanEntry[]
  readonly byNumber: ReadonlyMap<number, PlanEntry>
}

/** Plans by the field map they are made from: derived data, as constant as the schemas themselves. */
const plans = new WeakMap<ReadonlyMap<string, Field>, Plan>()

const none: ReadonlyMap<string, Field> = new Map()

export function planOf(schema: Schema): Plan {
  const fields = schema.fields ?? none
  const known = plans.get(fields)
  if (known) return known
  const plan = build([...fields.values()].map((field) => ({ field, within: field.protobuf?.within ?? [] })))
  plans.set(fields, plan)
  return plan
}

interface Placed {
  readonly field: Field
  readonly within: readonly number[]
}

function build(fields: readonly Placed[]): Plan {
  const entries: PlanEntry[] = []
  const inner = new Map<number, Placed[]>()
  for (const { field, within } of fields) {
    if (field.protobuf === undefined) continue
    const [outer, ...rest] = within
    if (outer === undefined) entries.push({ number: field.protobuf.number, field })
    else {
      const group = inner.get(outer) ?? []
      inner.set(outer, group)
      group.push({ field, within: rest })
    }
  }
  for (const [number, group] of inner) entries.push({ number, inline: build(group) })
  entries.sort((a, b) => a.number - b.number)
  return { entries, byNumber: new Map(entries.map((entry) => [entry.number, entry])) }
}

/** apiextensions types that are "one of": in JSON any value, on the wire a message. */
export function unionOf({ definition }: Schema): 'json' | 'orArray' | 'orBool' | 'orStringArray' | undefined {
  switch (definition) {
    case 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON':
      return 'json'
    case 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray':
      return 'orArray'
    case 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool':
      return 'orBool'
    case 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray':
      return 'orStringArray'
  }
  return undefined
}

export const jsonSchemaProps = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps'
