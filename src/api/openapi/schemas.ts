/**
 * Schemas as OpenAPI v2 and v3 show them (L1), from the compiled schema: references for named definitions, Kubernetes' list and map
 * markers, and texts from outside. Upstream: kube-openapi/pkg/builder, pkg/builder3 (v1.36).
 */
import { ownValue } from '#base/bareMap'
import type { GroupVersionKind } from '../machinery/meta.ts'
import { marksOf, schemaOfDefinition } from '../schema/builtIn.ts'
import type { Field, Schema } from '../schema/schema.ts'

export type JsonSchema = Record<string, unknown>

/** Texts live outside the code: undefined where there is none. */
export type Describe = (definition: string, field?: string) => string | undefined

/** A named schema that is not built in: it describes a CRD's kind, or a kind that the server computes. */
export interface ExtraDefinition {
  readonly name: string
  readonly schema: Schema
  /** Absent: a part of other definitions. */
  readonly kind?: GroupVersionKind | undefined
  /** Descriptions of the definition, under '', and of its fields, for when no texts are loaded. */
  readonly texts?: Readonly<Record<string, string>> | undefined
  /** Writes more than the compiled schema holds. Absent: the compiled schema is written. */
  write?(writer: DefinitionWriter): JsonSchema
}

/** What a definition that writes itself needs. */
export interface DefinitionWriter {
  readonly version: 'v2' | 'v3'
  readonly describe: Describe
  /** The definition will be part of the document. */
  reference(name: string): JsonSchema
}

/** Writes schemas in one OpenAPI version and remembers which definitions they refer to. */
export class SchemaWriter {
  readonly #version: 'v2' | 'v3'
  readonly #describe: Describe
  readonly #extras: ReadonlyMap<string, ExtraDefinition>
  readonly #pending = new Set<string>()

  constructor(version: 'v2' | 'v3', describe: Describe, extras: readonly ExtraDefinition[] = []) {
    this.#version = version
    this.#describe = describe
    this.#extras = new Map(extras.map((extra) => [extra.name, extra]))
  }

  /** The reference to a definition, which will be among {@link definitions}. */
  reference(name: string): JsonSchema {
    this.#pending.add(name)
    return { $ref: this.#version === 'v2' ? `#/definitions/${name}` : `#/components/schemas/${name}` }
  }

  /** Every definition referred to so far, with all that those refer to, one at a time. */
  *definitions(): Generator<readonly [name: string, definition: JsonSchema]> {
    // The set grows while definitions are written; iteration sees the new names.
    for (const name of this.#pending) yield [name, this.#definition(name)]
  }

  #definition(name: string): JsonSchema {
    const extra = this.#extras.get(name)
    const schema = extra ? extra.schema : schemaOfDefinition(name)
    const marks = marksOf(name)
    const kinds = extra ? (extra.kind ? [extra.kind] : []) : (marks?.kinds ?? [])
    const description = this.#text(name)
    const own = extra?.write?.({ version: this.#version, describe: this.#describe, reference: (other) => this.reference(other) })
    return {
      ...(description === undefined ? {} : { description }),
      ...(own ?? this.#body(schema, name)),
      ...(kinds.length > 0 ? { 'x-kubernetes-group-version-kind': kinds.map(({ group, version, kind }) => ({ group, kind, version })) } : {}),
      ...(marks?.mapType ? { 'x-kubernetes-map-type': marks.mapType } : {}),
      ...(marks?.unions ? { 'x-kubernetes-unions': marks.unions } : {}),
    }
  }

  #text(definition: string, field?: string): string | undefined {
    return this.#describe(definition, field) ?? ownValue(this.#extras.get(definition)?.texts, field ?? '')
  }

  /** The content of a schema, without its own name. */
  #body(schema: Schema, owner: string): JsonSchema {
    switch (schema.type) {
      case 'object': {
        const fields = [...(schema.fields?.values() ?? [])]
        const required = fields.filter((field) => field.required).map((field) => field.name)
        return {
          type: 'object',
          ...(required.length > 0 ? { required } : {}),
          ...(fields.length > 0 ? { properties: Object.fromEntries(fields.map((field) => [field.name, this.#property(field, owner)])) } : {}),
          ...(schema.preserveUnknownFields ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
        }
      }
      case 'array':
        return { type: 'array', items: schema.element ? this.#element(schema.element, owner) : {} }
      case 'map':
        return { type: 'object', additionalProperties: schema.element ? this.#element(schema.element, owner) : {} }
      default:
        return this.#scalar(schema)
    }
  }

  #scalar({ type, format, definition, enum: values }: Schema): JsonSchema {
    const choices = values ? { enum: values } : {}
    switch (format) {
      case 'int-or-string':
        return this.#version === 'v2' ? { type: 'string', format } : { oneOf: [{ type: 'integer' }, { type: 'string' }], format }
      case 'quantity':
        return this.#version === 'v2' ? { type: 'string' } : { oneOf: [{ type: 'string' }, { type: 'number' }] }
      case 'duration':
        return { type: 'string' }
      case 'micro-time':
        return { type: 'string', format: 'date-time' }
      case 'raw-extension':
      case 'fields-v1':
        return { type: 'object' }
      case 'json':
        // Only apiextensions' JSON types may be anything; Patch and free-form fields are objects.
        return definition?.includes('.apiextensions.') ? {} : { type: 'object' }
    }
    if (type === 'any') return { 'x-kubernetes-preserve-unknown-fields': true }
    return { type, ...(format ? { format } : {}), ...choices }
  }

  /** An item of a list or a value of a map. v3 says what Go makes of an absent one: built-in items are never null. */
  #element(schema: Schema, owner: string): JsonSchema {
    const shown = this.#version === 'v3' && !this.#extras.has(owner)
    if (schema.definition === undefined) return { ...this.#body(schema, owner), ...(shown ? zeroOf(schema) : {}) }
    const reference = this.reference(schema.definition)
    return this.#version === 'v3' && schema.type === 'object' ? { allOf: [reference], default: {} } : reference
  }

  #property(field: Field, owner: string): JsonSchema {
    const { schema } = field
    const description = this.#text(owner, field.name)
    return {
      ...(description === undefined ? {} : { description }),
      ...(schema.definition === undefined ? this.#body(schema, owner) : this.#named(schema.definition, field)),
      ...this.#default(field, owner),
      ...markers(schema),
    }
  }

  /** Defaults of built-in kinds, the zero of what is always written included, are shown by v3 alone; a CRD's are its author's, in both. */
  #default({ schema, default: value, alwaysPresent, pointer }: Field, owner: string): JsonSchema {
    if (schema.definition !== undefined) return {}
    if (this.#extras.has(owner)) return value === undefined ? {} : { default: value }
    if (this.#version === 'v2') return {}
    if (value !== undefined) return { default: value }
    return alwaysPresent && !pointer ? zeroOf(schema) : {}
  }

  #named(name: string, { schema, pointer }: Field): JsonSchema {
    if (this.#version === 'v2') return this.reference(name)
    return { allOf: [this.reference(name)], ...(schema.type === 'object' && !pointer ? { default: {} } : {}) }
  }
}

/** Go's zero value of a scalar; bytes, lists and maps have none. */
function zeroOf({ type, format }: Schema): JsonSchema {
  if (type === 'string') return format === 'byte' ? {} : { default: '' }
  if (type === 'integer' || type === 'number') return { default: 0 }
  return type === 'boolean' ? { default: false } : {}
}

function markers(schema: Schema): JsonSchema {
  const { listType, listMapKeys, mapType, patchStrategies, patchMergeKey, definition } = schema
  const ownMapType = definition !== undefined && marksOf(definition)?.mapType === mapType ? undefined : mapType
  return {
    ...(listMapKeys ? { 'x-kubernetes-list-map-keys': listMapKeys } : {}),
    ...(listType ? { 'x-kubernetes-list-type': listType } : {}),
    ...(ownMapType && schema.format !== 'fields-v1' ? { 'x-kubernetes-map-type': ownMapType } : {}),
    ...(patchMergeKey ? { 'x-kubernetes-patch-merge-key': patchMergeKey } : {}),
    ...(patchStrategies ? { 'x-kubernetes-patch-strategy': patchStrategies.join(',') } : {}),
  }
}
