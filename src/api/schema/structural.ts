/**
 * Compiles a CRD's openAPIV3Schema into the schema that built-in kinds use too (L1), and prunes objects by it. Types and value rules of
 * custom resources are checked by ./structuralValidation.ts, because their errors are field errors, not decoding errors.
 * Upstream: apiextensions-apiserver/pkg/apiserver/schema, schema/pruning (v1.36).
 */
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { isObject, type JsonObject } from '../machinery/objects.ts'
import { schemaOfDefinition } from './builtIn.ts'
import type { Field, Schema, SchemaFormat } from './schema.ts'

const metaV1 = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/**
 * The schema of a custom resource's kind.
 * @param definition its name in OpenAPI documents, e.g. com.example.v1.Foo.
 * @param props undefined, or with x-kubernetes-preserve-unknown-fields at its root: everything is kept.
 */
export function compileStructural(definition: string, props: JSONSchemaProps | undefined): Schema {
  const root = compile(props ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true })
  const fields = new Map([...objectFields(`${metaV1}.ObjectMeta`), ...[...(root.fields ?? [])].filter(([name]) => !objectMembers.has(name))])
  return { type: 'object', definition, fields, preserveUnknownFields: root.preserveUnknownFields }
}

/** The schema of the kind's list. */
export function listSchemaOf(definition: string, item: Schema): Schema {
  const items: Field = { name: 'items', required: true, schema: { type: 'array', element: item } }
  return { type: 'object', definition, fields: new Map([...objectFields(`${metaV1}.ListMeta`), ['items', items]]) }
}

const objectMembers: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata'])

function objectFields(metadata: string): Map<string, Field> {
  return new Map([
    ['apiVersion', { name: 'apiVersion', required: false, schema: { type: 'string' } }],
    ['kind', { name: 'kind', required: false, schema: { type: 'string' } }],
    ['metadata', { name: 'metadata', required: false, alwaysPresent: true, schema: schemaOfDefinition(metadata) }],
  ])
}

/** The schema of a part of a custom resource, such as one that has a default. */
export function compileNode(props: JSONSchemaProps): Schema {
  return compile(props)
}

function compile(props: JSONSchemaProps): Schema {
  const common = {
    ...(props['x-kubernetes-preserve-unknown-fields'] ? { preserveUnknownFields: true } : {}),
    ...(props.nullable ? { nullable: true } : {}),
  }
  if (props['x-kubernetes-int-or-string']) return { type: 'string', format: 'int-or-string', ...common }
  switch (props.type) {
    case 'object':
      return compileObject(props, common)
    case 'array': {
      const listType = props['x-kubernetes-list-type'] as 'atomic' | 'set' | 'map' | undefined
      return {
        type: 'array',
        ...elementOf(props.items),
        ...(listType ? { listType } : {}),
        ...(props['x-kubernetes-list-map-keys'] ? { listMapKeys: props['x-kubernetes-list-map-keys'] } : {}),
        ...common,
      }
    }
    case 'string':
      return { type: 'string', ...(props.enum ? { enum: props.enum as string[] } : {}), ...common }
    case 'integer':
    case 'number':
      return { type: props.type, ...numberFormat(props), ...common }
    case 'boolean':
      return { type: 'boolean', ...common }
    default:
      return { type: 'any', ...common }
  }
}

function numberFormat({ format }: JSONSchemaProps): { format?: SchemaFormat } {
  return format === 'int32' || format === 'int64' || format === 'double' ? { format } : {}
}

/** The schema of items or values; without one anything goes. */
function elementOf(props: unknown): Pick<Schema, 'element' | 'elementDefault'> {
  if (!isObject(props)) return { element: { type: 'any', preserveUnknownFields: true } }
  const element = compile(props as JSONSchemaProps)
  return props.default === undefined ? { element } : { element, elementDefault: props.default }
}

function compileObject(props: JSONSchemaProps, common: Pick<Schema, 'preserveUnknownFields' | 'nullable'>): Schema {
  const mapType = props['x-kubernetes-map-type'] as 'atomic' | 'granular' | undefined
  const marks = { ...common, ...(mapType ? { mapType } : {}) }
  const { additionalProperties } = props
  const open = additionalProperties !== undefined && additionalProperties !== false
  // Named properties and a free rest: the rest is kept as it is.
  const mixed = open && props.properties !== undefined
  if (open && !mixed) return { type: 'map', ...elementOf(additionalProperties), ...marks }
  const required = new Set(props.required ?? [])
  const embedded = props['x-kubernetes-embedded-resource'] === true
  const fields = new Map<string, Field>(embedded ? objectFields(`${metaV1}.ObjectMeta`) : [])
  for (const [name, child] of Object.entries(props.properties ?? {})) {
    if (fields.has(name)) continue
    fields.set(name, { name, required: required.has(name), schema: compile(child), ...(child.default === undefined ? {} : { default: child.default }) })
  }
  return { type: 'object', fields, ...marks, ...(mixed ? { preserveUnknownFields: true } : {}), ...(embedded ? { embeddedResource: true } : {}) }
}

/**
 * Drops what the schema does not know, in place.
 * @returns the paths of what was dropped, for fieldValidation Warn and Strict.
 */
export function pruneUnknownFields(value: unknown, schema: Schema): string[] {
  const dropped: string[] = []
  prune(value, schema, '', dropped)
  return dropped
}

function prune(value: unknown, schema: Schema, path: string, dropped: string[]): void {
  if (Array.isArray(value)) {
    const { element } = schema
    if (schema.type === 'array' && element) for (const [index, item] of value.entries()) prune(item, element, `${path}[${index}]`, dropped)
    return
  }
  if (!isObject(value)) return
  if (schema.type === 'object') pruneObject(value, schema, path, dropped)
  else if (schema.type === 'map' && schema.element) {
    for (const [key, item] of Object.entries(value)) prune(item, schema.element, `${path}.${key}`, dropped)
  } else if (schema.type === 'any' && !schema.preserveUnknownFields) {
    // A value of no type keeps scalars, but an object in its place has no known fields.
    pruneObject(value, { ...schema, type: 'object', fields: new Map() }, path, dropped)
  }
}

function pruneObject(object: JsonObject, schema: Schema, path: string, dropped: string[]): void {
  for (const name of Object.keys(object)) {
    const field = schema.fields?.get(name)
    const child = path === '' ? name : `${path}.${name}`
    if (field) prune(object[name], field.schema, child, dropped)
    else if (!schema.preserveUnknownFields) {
      delete object[name]
      dropped.push(child)
    }
  }
}
