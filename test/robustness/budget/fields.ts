/**
 * The fields of the built-in kinds, from their schemas: where each one is, and the least object that has it. Lists and maps get one element on the
 * way down; a definition that holds itself is entered once.
 */
import { parseGroupVersion } from '#api/machinery/meta'
import { schemaFor } from '#api/schema/builtIn'
import type { Schema } from '#api/schema/schema'
import { leastOf, nameFor, type ResourceRow, resourceTable } from '../../conformance/resourceTable.ts'

export interface Kind {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly kind: string
  readonly isNamespaced: boolean
  readonly verbs: readonly string[]
  readonly schema: Schema
}

/** A field name, or what stands for the first element of a list or map. */
export type Step = string | typeof inList | typeof inMap
export const inList = Symbol('list')
export const inMap = Symbol('map')

export interface BudgetField {
  readonly kind: Kind
  readonly path: readonly Step[]
  readonly schema: Schema
  /** As users write it: `spec.containers[].env[].name`. */
  readonly name: string
  /** The definition that has it, and where below: fields of one origin are read by the same code. */
  readonly origin: string
  /** Lies in the pod template of another kind than Pod: the same code has seen the same field there. */
  readonly isInTemplate: boolean
}

const podSpec = 'io.k8s.api.core.v1.PodSpec'
/** Set by the server, or chosen for each request. */
const skipped = new Set(['apiVersion', 'kind', 'metadata.name', 'metadata.namespace'])
/** Fields of metadata that the server takes from a client; it overwrites the others. */
const ofMetadata = new Set(['generateName', 'labels', 'annotations', 'finalizers', 'ownerReferences', 'managedFields'])

/** The kinds that a client can write, each by its preferred version. */
export function budgetKinds(): Kind[] {
  return resourceTable.filter(([, , , , , verbs]) => verbs.includes('create') || verbs.startsWith('create')).flatMap(kindOf)
}

function kindOf([groupVersion, resource, , kind, scope, verbs]: ResourceRow): Kind[] {
  const { group, version } = parseGroupVersion(groupVersion)
  const schema = schemaFor(group, version, kind)
  return schema ? [{ group, version, resource, kind, isNamespaced: scope === 'ns', verbs: verbs.split(' '), schema }] : []
}

export function fieldsOf(kind: Kind): BudgetField[] {
  const found: BudgetField[] = []
  const visit = (schema: Schema, path: readonly Step[], within: ReadonlySet<string>, origin: string): void => {
    const { definition } = schema
    if (definition && within.has(definition)) return
    const deeper = definition ? new Set([...within, definition]) : within
    const name = nameOfPath(path)
    if (path.length > 0 && schema.type !== 'object') found.push({ kind, path, schema, name, origin, isInTemplate: within.has(podSpec) && kind.kind !== 'Pod' })
    for (const field of schema.fields?.values() ?? []) {
      const inner = [...path, field.name]
      if (skipped.has(nameOfPath(inner)) || (path.length === 0 && field.name === 'status')) continue
      if (name === 'metadata' && !ofMetadata.has(field.name)) continue
      visit(field.schema, inner, deeper, `${definition ?? origin}.${field.name}`)
    }
    if (schema.element && schema.element.type !== 'string') visit(schema.element, [...path, schema.type === 'array' ? inList : inMap], deeper, `${origin}[]`)
  }
  visit(kind.schema, [], new Set(), '')
  return found
}

function nameOfPath(path: readonly Step[]): string {
  return path.reduce<string>(
    (text, step) => (step === inList ? `${text}[]` : step === inMap ? `${text}{}` : text ? `${text}.${String(step)}` : String(step)),
    '',
  )
}

export type JsonObject = Record<string, unknown>

export function leastObject({ group, version, resource, kind, isNamespaced }: Kind, namespace: string): JsonObject {
  return {
    apiVersion: group ? `${group}/${version}` : version,
    kind,
    metadata: { name: nameFor(resource), ...(isNamespaced ? { namespace } : {}) },
    ...structuredClone(leastOf(group, resource)),
  }
}

/** Sets a field of the least object, with what must be around it. */
export function withField(object: JsonObject, { kind, path }: BudgetField, value: unknown): JsonObject {
  let schema: Schema | undefined = kind.schema
  // biome-ignore lint/suspicious/noExplicitAny: the shape follows from the schema
  let at: any = object
  for (const [index, step] of path.entries()) {
    const isLast = index === path.length - 1
    schema = typeof step === 'string' ? schema?.fields?.get(step)?.schema : schema?.element
    const key = step === inList ? 0 : step === inMap ? (Object.keys(at)[0] ?? 'k0') : (step as string)
    if (isLast) at[key] = value
    else at[key] ??= schema ? sample(schema, String(key), 0) : {}
    at = at[key]
  }
  return object
}

/** A value that the schema allows, with the fields that it requires; `index` tells several of them apart. */
export function sample(schema: Schema, name: string, index: number, depth = 0): unknown {
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        [...(schema.fields?.values() ?? [])]
          .filter((field) => depth < 6 && (field.required || telling.has(field.name)))
          .map((field) => [field.name, sample(field.schema, field.name, index, depth + 1)]),
      )
    case 'array':
      return schema.element && depth < 6 ? [sample(schema.element, name, index, depth + 1)] : []
    case 'map':
      return {}
    case 'integer':
    case 'number':
      return index + 1
    case 'boolean':
      return false
    case 'string':
      return sampleString(schema, name, index)
    case 'any':
      return schema.format === 'quantity' ? '1' : schema.format === 'int-or-string' ? 1 + (index % 60_000) : {}
  }
}

/** Fields that tell items apart or that validation asks for, though the schema does not. */
const telling = new Set([
  'name',
  'key',
  'mountPath',
  'operator',
  'path',
  'effect',
  'topologyKey',
  'whenUnsatisfiable',
  'maxSkew',
  'verbs',
  'apiGroups',
  'resources',
])

const knownStrings: Readonly<Record<string, string>> = {
  operator: 'Exists',
  effect: 'NoSchedule',
  whenUnsatisfiable: 'ScheduleAnyway',
  image: 'x',
  restartPolicy: 'Never',
  protocol: 'TCP',
  apiVersion: 'v1',
  verbs: 'get',
  apiGroups: '',
}

function sampleString({ enum: allowed, format }: Schema, name: string, index: number): string {
  if (allowed?.length) return allowed.find((value) => value !== '') as string
  if (format === 'date-time') return '2026-01-01T00:00:00Z'
  if (format === 'micro-time') return '2026-01-01T00:00:00.000000Z'
  if (format === 'byte') return 'YQ=='
  return (
    knownStrings[name] ?? (name.endsWith('Path') || name === 'path' ? `/p${index}` : name === 'ip' ? `10.9.${(index >> 8) & 255}.${index & 255}` : `n${index}`)
  )
}
