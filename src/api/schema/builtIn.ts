/**
 * The compiled schemas of the built-in kinds (L1), resolved from the generated table one definition at a time, on first use.
 * Recursive definitions (JSONSchemaProps) work because a node's fields are resolved when they are first asked for.
 */
import { bareMap } from '#base/bareMap'
import { kubernetesVersion } from '#base/version'
import { type DefinitionRow, type FieldExtras, type FieldRow, factsTable, once } from '../gen/table.ts'
import type { GroupVersionKind } from '../machinery/meta.ts'
import type { Field, Schema, SchemaFormat } from './schema.ts'
import { zerosOf } from './zeros.ts'

const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/** The letters of the table that stand for a leaf. */
const leaves: Readonly<Record<string, Schema>> = bareMap({
  s: { type: 'string' },
  i: { type: 'integer', format: 'int32' },
  l: { type: 'integer', format: 'int64' },
  d: { type: 'number', format: 'double' },
  b: { type: 'boolean' },
  y: { type: 'string', format: 'byte' },
  t: { type: 'string', format: 'date-time', definition: `${meta}.Time` },
  m: { type: 'string', format: 'micro-time', definition: `${meta}.MicroTime` },
  q: { type: 'string', format: 'quantity', definition: 'io.k8s.apimachinery.pkg.api.resource.Quantity' },
  // In no built-in kind: the kinds of computed groups find it by its definition.
  u: { type: 'string', format: 'duration', definition: `${meta}.Duration` },
  x: { type: 'string', format: 'int-or-string', definition: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString' },
  r: { type: 'any', format: 'raw-extension', definition: 'io.k8s.apimachinery.pkg.runtime.RawExtension', preserveUnknownFields: true },
  f: { type: 'any', format: 'fields-v1', definition: `${meta}.FieldsV1`, preserveUnknownFields: true, mapType: 'atomic' },
  p: { type: 'any', format: 'json', definition: `${meta}.Patch`, preserveUnknownFields: true },
  o: { type: 'any', format: 'json', preserveUnknownFields: true },
})

interface Registry {
  readonly rows: readonly DefinitionRow[]
  readonly byName: ReadonlyMap<string, number>
  /** 'group/version/kind' → index. */
  readonly byKind: ReadonlyMap<string, number>
  readonly resolved: (Schema | undefined)[]
}

const registry = once((): Registry => {
  const rows = factsTable().definitions
  const byKind = new Map<string, number>()
  rows.forEach(([, , extras], index) => {
    if (extras.gvk) byKind.set(extras.gvk.join('/'), index)
  })
  return { rows, byName: new Map(rows.map(([name], index) => [name, index])), byKind, resolved: [] }
})

/** The schema of a built-in kind; undefined when the v1.36 API has no such kind. DeleteOptions exists in every group-version. */
export function schemaFor(group: string, version: string, kind: string): Schema | undefined {
  const index = registry().byKind.get(`${group}/${version}/${kind}`)
  if (index !== undefined) return resolve(index)
  return kind === 'DeleteOptions' || kind === 'WatchEvent' ? schemaOfDefinition(`${meta}.${kind}`) : undefined
}

/**
 * The schema of a definition by its full name, e.g. io.k8s.api.core.v1.Container.
 * @throws Error when there is none: a mistake in the program.
 */
export function schemaOfDefinition(name: string): Schema {
  const index = registry().byName.get(name)
  if (index !== undefined) return resolve(index)
  const leaf = Object.values(leaves).find((candidate) => candidate.definition === name)
  if (!leaf) throw new Error(`no definition ${name} in the API of Kubernetes ${kubernetesVersion}`)
  return leaf
}

/** The full name of a kind's definition. */
export function definitionOf(group: string, version: string, kind: string): string | undefined {
  const index = registry().byKind.get(`${group}/${version}/${kind}`)
  return index === undefined ? undefined : registry().rows[index]?.[0]
}

/** What OpenAPI shows of a definition beyond its schema. */
export interface DefinitionMarks {
  /** The kinds that have this shape. */
  readonly kinds: readonly GroupVersionKind[]
  readonly mapType?: 'atomic' | 'granular' | undefined
  readonly unions?: unknown
}

/** The marks of a built-in definition; undefined for other names. */
export function marksOf(definition: string): DefinitionMarks | undefined {
  const index = registry().byName.get(definition)
  const extras = index === undefined ? undefined : registry().rows[index]?.[2]
  if (!extras) return undefined
  const { every, gvk, mt, unions } = extras
  const kinds = every
    ? factsTable().optionGroups.map(([group, version]) => ({ group, version, kind: every }))
    : gvk
      ? [{ group: gvk[0], version: gvk[1], kind: gvk[2] }]
      : []
  return { kinds, mapType: mt, unions }
}

function resolve(index: number): Schema {
  const { rows, resolved } = registry()
  const known = resolved[index]
  if (known) return known
  const row = rows[index]
  if (!row) throw new Error(`definition ${index} is out of range`)
  const schema = compile(row)
  resolved[index] = schema
  return schema
}

function compile([name, fields, extras]: DefinitionRow): Schema {
  const leaf = Object.values(leaves).find((candidate) => candidate.definition === name)
  if (leaf) return leaf
  if (extras.any) return { type: 'any', format: 'json', definition: name, preserveUnknownFields: true }
  const lazyFields = once(() => new Map(fields.map((row) => [row[0], compileField(row)])))
  const lazyZeros = once(() => zerosOf(lazyFields()))
  return {
    type: 'object',
    definition: name,
    mapType: extras.mt,
    get fields() {
      return lazyFields()
    },
    get zeros() {
      return lazyZeros()
    },
  }
}

function compileField([name, type, number, extras = {}]: FieldRow): Field {
  return {
    name,
    schema: compileType(type, extras),
    required: extras.r === 1,
    ...(extras.p === 1 ? { pointer: true } : {}),
    ...(extras.a === 1 ? { alwaysPresent: true } : {}),
    ...(extras.d === undefined ? {} : { default: extras.d }),
    ...(number === 0 ? {} : { protobuf: { number, type, ...(extras.in ? { within: extras.in } : {}) } }),
  }
}

function compileType(type: string, extras: FieldExtras): Schema {
  const strategies = extras.ps === undefined ? {} : { patchStrategies: extras.ps.split(',') }
  const mergeKey = extras.pk === undefined ? {} : { patchMergeKey: extras.pk }
  if (type.startsWith('[')) {
    const element = lazyElement(type)
    return {
      type: 'array',
      get element() {
        return element()
      },
      ...(extras.lt ? { listType: extras.lt } : {}),
      ...(extras.lk ? { listMapKeys: extras.lk } : {}),
      ...strategies,
      ...mergeKey,
    }
  }
  if (type.startsWith('{')) {
    const element = lazyElement(type)
    return {
      type: 'map',
      get element() {
        return element()
      },
      ...(extras.mt ? { mapType: extras.mt } : {}),
      ...strategies,
    }
  }
  const plain = leafOrDefinition(type)
  if (extras.ps === undefined && extras.mt === undefined && extras.lt === undefined) return plain
  // The field's own markers win over its definition's.
  const view: Schema = { ...plainMembers(plain), ...(extras.mt ? { mapType: extras.mt } : {}), ...(extras.lt ? { listType: extras.lt } : {}), ...strategies }
  return plain.type === 'object' ? withFieldsOf(view, plain) : view
}

function plainMembers({ type, format, definition, mapType, preserveUnknownFields }: Schema): Schema & { format: SchemaFormat | undefined } {
  return { type, format, definition, mapType, preserveUnknownFields }
}

function withFieldsOf(view: Schema, source: Schema): Schema {
  return {
    ...view,
    get fields() {
      return source.fields
    },
    get zeros() {
      return source.zeros
    },
  }
}

function lazyElement(type: string): () => Schema {
  return once(() => compileType(type.slice(1), {}))
}

function leafOrDefinition(type: string): Schema {
  if (type.startsWith('@')) return resolve(Number(type.slice(1)))
  const leaf = leaves[type]
  if (!leaf) throw new Error(`the facts hold an unknown type ${type}`)
  return leaf
}
