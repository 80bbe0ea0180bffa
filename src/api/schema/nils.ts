/**
 * Go's nils (L1): lists, times, bytes and free-form values that Go's JSON never omits and shows as null when they are absent, such as `rules` of
 * a ClusterRole, `endpoints` of an EndpointSlice and `lastProbeTime` of a condition. The schema names them (`alwaysPresent`, read from the struct
 * tags of k8s.io/api v1.36). Objects in memory never hold these nulls: they are added when an object becomes JSON for a client, and removed when
 * it is read from the store. Custom resources have none. Texts, numbers and structs are in ./zeros.ts.
 */
import { parseGroupVersion } from '../machinery/meta.ts'
import { schemaFor } from './builtIn.ts'
import { perSchema } from './perSchema.ts'
import type { Schema } from './schema.ts'
import { hasZero } from './zeros.ts'

type Members = Record<string, unknown>

interface NilField {
  readonly name: string
  readonly isList: boolean
  readonly required: boolean
}

/** What of a struct's fields may be nil, and which of its fields hold structs of which that is true. */
interface Plan {
  readonly nils: readonly NilField[]
  readonly below: readonly { readonly name: string; readonly schema: Schema }[]
}

/** Upstream keeps these as JSON; all others as protobuf, which knows no empty list: what was sent as [] is nil when it is read again. */
const keptAsJson: ReadonlySet<string> = new Set(['apiextensions.k8s.io', 'apiregistration.k8s.io'])

interface Typed {
  readonly apiVersion?: unknown
  readonly kind?: unknown
}

/** The object as Go's JSON shows it: itself where nothing is nil, else a copy of what leads to the nulls. */
export function withNils<T extends object>(object: T): T {
  const { schema, group } = typeOf(object)
  return schema ? (shown(object as Members, schema, keptAsJson.has(group)) as T) : object
}

/** Removes the nulls of an object in place. The caller has just parsed it. A null becomes absent, or an empty list if the field is required. */
export function withoutNils<T extends object>(object: T): T {
  const { schema } = typeOf(object)
  if (schema) strip(object as Members, schema)
  return object
}

/** Adds the required lists that protobuf leaves out when they are empty, in place. The caller has just decoded the object. */
export function withRequiredLists<T extends object>(object: T): T {
  const { schema } = typeOf(object)
  if (schema) fill(object as Members, schema)
  return object
}

function typeOf({ apiVersion, kind }: Typed): { readonly schema: Schema | undefined; readonly group: string } {
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return { schema: undefined, group: '' }
  const { group, version } = parseGroupVersion(apiVersion)
  return { schema: schemaFor(group, version, kind), group }
}

function shown(value: unknown, schema: Schema, keepEmpty: boolean): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (schema.type === 'array' || schema.type === 'map') return shownMembers(value as Members, schema, keepEmpty)
  const plan = planOf(schema)
  if (plan === nothing) return value
  const object = value as Members
  let copy: Members | undefined
  for (const { name, isList } of plan.nils) {
    const member = object[name]
    if (member === null || (member !== undefined && !(isList && !keepEmpty && (member as unknown[]).length === 0))) continue
    copy ??= { ...object }
    copy[name] = null
  }
  for (const { name, schema: below } of plan.below) {
    const member = object[name]
    if (member === undefined) continue
    const made = shown(member, below, keepEmpty)
    if (made === member || (copy && copy[name] === null)) continue
    copy ??= { ...object }
    copy[name] = made
  }
  return copy ?? object
}

/** Items of a list, values of a map. */
function shownMembers(members: Members, { element }: Schema, keepEmpty: boolean): unknown {
  if (!element) return members
  let copy: Members | undefined
  for (const key in members) {
    const made = shown(members[key], element, keepEmpty)
    if (made === members[key]) continue
    copy ??= Array.isArray(members) ? (members.slice() as unknown as Members) : { ...members }
    copy[key] = made
  }
  return copy ?? members
}

function strip(value: unknown, schema: Schema): void {
  if (typeof value !== 'object' || value === null) return
  const object = value as Members
  if (schema.type === 'array' || schema.type === 'map') {
    if (schema.element) for (const key in object) strip(object[key], schema.element)
    return
  }
  const { nils, below } = planOf(schema)
  for (const { name, isList, required } of nils) {
    if (object[name] !== null) continue
    if (isList && required) object[name] = []
    else delete object[name]
  }
  for (const { name, schema: member } of below) strip(object[name], member)
}

function fill(value: unknown, schema: Schema): void {
  if (typeof value !== 'object' || value === null) return
  const object = value as Members
  if (schema.type === 'array' || schema.type === 'map') {
    if (schema.element) for (const key in object) fill(object[key], schema.element)
    return
  }
  const { nils, below } = planOf(schema)
  for (const { name, isList, required } of nils) if (isList && required) object[name] ??= []
  for (const { name, schema: member } of below) fill(object[name], member)
}

const nothing: Plan = { nils: [], below: [] }
const planOf = perSchema(makePlan)

function makePlan({ fields }: Schema): Plan {
  if (!fields) return nothing
  const nils: NilField[] = []
  const below: Plan['below'][number][] = []
  for (const { name, schema, alwaysPresent, required } of fields.values()) {
    if (alwaysPresent && !hasZero(schema)) nils.push({ name, isList: schema.type === 'array', required })
    if (holdsNils(schema, new Set())) below.push({ name, schema })
  }
  return nils.length > 0 || below.length > 0 ? { nils, below } : nothing
}

/** Whether anything inside may be nil; schemas may refer to themselves. */
function holdsNils(schema: Schema, seen: Set<Schema>): boolean {
  if (schema.type === 'array' || schema.type === 'map') return schema.element !== undefined && holdsNils(schema.element, seen)
  if (schema.type !== 'object' || !schema.fields || seen.has(schema)) return false
  seen.add(schema)
  for (const field of schema.fields.values()) if ((field.alwaysPresent && !hasZero(field.schema)) || holdsNils(field.schema, seen)) return true
  return false
}
