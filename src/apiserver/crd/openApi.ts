/**
 * The OpenAPI definitions of a custom resource's kinds (L3): the definition's schema, with the members of every object. Version 2 leaves out what its
 * clients do not support: logic, null, parts with unknown fields.
 * Upstream: apiextensions-apiserver/pkg/controller/openapi (builder/builder.go, v2/conversion.go), pkg/apiserver/schema/kubeopenapi.go.
 */

import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { additionalOf, itemsOf, type Props } from '#api/kinds/apiextensions/schemaWalk'
import { structuralFaults, unsupportedMember } from '#api/kinds/apiextensions/structuralRules'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { FieldPath } from '#api/machinery/fieldPath'
import type { DefinitionWriter, ExtraDefinition, JsonSchema } from '#api/openapi/schemas'
import type { Schema } from '#api/schema/schema'
import { listSchemaOf } from '#api/schema/structural'
import { ownValue } from '#base/bareMap'
import { type Definition, type DefinitionVersion, definitionName } from './definitions.ts'

const metaV1 = 'io.k8s.apimachinery.pkg.apis.meta.v1'

export interface ShownVersion {
  /** See {@link isPublishableSchema}. */
  readonly isPublishable: boolean
  readonly version: DefinitionVersion
  readonly schema: Schema
}

/** The definitions of the kind and its list, for each served version. */
export function openApiDefinitions(definition: Definition, versions: readonly ShownVersion[]): ExtraDefinition[] {
  const { group, names } = definition.spec
  const { kind, listKind = `${kind}List` } = definition.status.acceptedNames?.kind ? definition.status.acceptedNames : names
  return versions.flatMap(({ version, schema, isPublishable }) => {
    const name = definitionName(group, version.name, kind)
    const listName = definitionName(group, version.name, listKind)
    const selectable = selectableFields(version)
    const props = version.schema?.openAPIV3Schema
    return [
      {
        name,
        schema,
        kind: { group, version: version.name, kind },
        write: (writer: DefinitionWriter) => ({ ...kindSchema(isPublishable ? props : undefined, writer), ...selectable }),
      },
      {
        name: listName,
        schema: listSchemaOf(listName, schema),
        kind: { group, version: version.name, kind: listKind },
        write: (writer: DefinitionWriter) => ({ ...listSchema(definition, { kind, listKind, name }, writer), ...selectable }),
      },
    ]
  })
}

function selectableFields({ selectableFields: fields }: DefinitionVersion): JsonSchema {
  if (!fields?.length) return {}
  return { 'x-kubernetes-selectable-fields': fields.map(({ jsonPath }) => ({ fieldPath: jsonPath.replace(/^\./, '') })) }
}

function kindSchema(props: Props | undefined, writer: DefinitionWriter): JsonSchema {
  // Clients would read a schema without fields as a ban on all fields: publish only the type.
  if (!props || (writer.version === 'v2' && props['x-kubernetes-preserve-unknown-fields'])) return { type: 'object' }
  const written = schemaOf(props, writer)
  return { ...written, properties: { ...(written.properties as JsonSchema), ...typeMeta(writer), metadata: metadata('ObjectMeta', 'metadata', writer) } }
}

/** Whether documents show the schema; otherwise only the type. */
export function isPublishableSchema(props: Props | undefined): boolean {
  return props !== undefined && unsupportedMember(props) === undefined && structuralFaults(props, FieldPath.of()).length === 0
}

/** Upstream's descriptions are passed in, like those of all built-in definitions. */
function typeMeta({ describe }: DefinitionWriter): JsonSchema {
  const text = (field: string) => {
    const description = describe(`${metaV1}.Status`, field)
    return { ...(description === undefined ? {} : { description }), type: 'string' }
  }
  return { apiVersion: text('apiVersion'), kind: text('kind') }
}

function metadata(type: 'ObjectMeta' | 'ListMeta', field: string, { version, describe, reference }: DefinitionWriter): JsonSchema {
  const description = describe(type === 'ObjectMeta' ? 'io.k8s.api.core.v1.Pod' : 'io.k8s.api.core.v1.PodList', field)
  const to = reference(`${metaV1}.${type}`)
  return { ...(description === undefined ? {} : { description }), ...(version === 'v2' ? to : { allOf: [to] }) }
}

function listSchema(definition: Definition, { kind, listKind, name }: { kind: string; listKind: string; name: string }, writer: DefinitionWriter): JsonSchema {
  const { plural } = definition.spec.names
  const conventions = 'https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md'
  return {
    description: `${listKind} is a list of ${kind}`,
    type: 'object',
    required: ['items'],
    properties: {
      ...typeMeta(writer),
      items: { description: `List of ${plural}. More info: ${conventions}`, type: 'array', items: writer.reference(name) },
      metadata: metadata('ListMeta', 'metadata', writer),
    },
  }
}

/** Members that are copied unchanged. */
const plainMembers = [
  'type',
  'description',
  'title',
  'default',
  'externalDocs',
  'example',
  'format',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'uniqueItems',
  'multipleOf',
  'enum',
  'maxProperties',
  'minProperties',
  'required',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
] as const satisfies readonly (keyof JSONSchemaProps)[]

function schemaOf(props: Props, writer: DefinitionWriter): JsonSchema {
  const written: JsonSchema = {}
  for (const member of plainMembers) if (isSaid(props[member])) written[member] = props[member]
  const properties = Object.entries(props.properties ?? {})
  if (properties.length > 0) written.properties = Object.fromEntries(properties.map(([name, child]) => [name, schemaOf(child, writer)]))
  const items = itemsOf(props)
  if (items) written.items = schemaOf(items, writer)
  const additional = additionalOf(props)
  if (props.additionalProperties !== undefined) written.additionalProperties = additional ? schemaOf(additional, writer) : props.additionalProperties
  if (writer.version === 'v2') forVersion2(written, props)
  else Object.assign(written, props.nullable ? { nullable: true } : {}, logicOf(props))
  return props['x-kubernetes-embedded-resource'] ? withObjectMembers(written, writer) : written
}

/** Go's JSON omits empty texts and lists, zero and false, except numbers that are pointers. */
function isSaid(value: unknown): boolean {
  return value !== undefined && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0)
}

/** anyOf and its like; an int-or-string is expressed by anyOf. */
function logicOf(props: Props): JsonSchema {
  const written: JsonSchema = {}
  for (const word of ['allOf', 'anyOf', 'oneOf'] as const) if (props[word]?.length) written[word] = props[word]
  if (props.not) written.not = props.not
  if (!props['x-kubernetes-int-or-string']) return written
  const either = [{ type: 'integer' }, { type: 'string' }]
  const same = (one: unknown) => stringifyExactly(one) === stringifyExactly(either)
  if (same(props.anyOf) || same(props.allOf?.[0]?.anyOf)) return written
  if (!props.anyOf?.length) return { ...written, anyOf: either }
  return { ...written, allOf: [{ anyOf: either }, ...(props.allOf ?? [])] }
}

/** kubectl fails on typed parts that may be null or have unknown fields: their type is removed. */
function forVersion2(written: JsonSchema, props: Props): void {
  const preserve = props['x-kubernetes-preserve-unknown-fields'] === true
  if (props.nullable || preserve) {
    delete written.items
    delete written.properties
  }
  if (props.nullable || (preserve && written.type === 'object') || (written.type === 'array' && written.items === undefined)) delete written.type
  const nullable = (name: string) => ownValue(props.properties, name)?.nullable === true
  const required = additionalOf(props)?.nullable ? [] : (props.required ?? []).filter((name) => written.properties === undefined || !nullable(name))
  if (required.length > 0) written.required = required
  else delete written.required
}

function withObjectMembers(written: JsonSchema, writer: DefinitionWriter): JsonSchema {
  if (writer.version === 'v2' && written['x-kubernetes-preserve-unknown-fields']) return written
  const required = new Set([...((written.required as string[] | undefined) ?? []), 'kind', 'apiVersion'])
  const members = { ...typeMeta(writer), metadata: metadata('ObjectMeta', 'metadata', writer) }
  return { ...written, properties: { ...(written.properties as JsonSchema | undefined), ...members }, required: [...required] }
}
