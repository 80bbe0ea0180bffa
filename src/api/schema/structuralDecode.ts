/**
 * Turns parsed JSON into a custom resource (L1): typed metadata, unknown fields pruned, nulls dropped where the schema allows none. Types of
 * other fields are not looked at: those faults are field errors of ./structuralValidation.ts, not decoding errors.
 * Upstream: unstructuredSchemaCoercer of apiextensions-apiserver/pkg/apiserver/customresource_handler.go, pkg/apiserver/schema/objectmeta.
 */
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import { isObject } from '../machinery/objects.ts'
import { badRequest, isStatus } from '../machinery/status.ts'
import { schemaOfDefinition } from './builtIn.ts'
import { cannotBeHandled, type Decoded, DecodeError, type DecodeOptions, decode, refuseTooLarge } from './decode.ts'
import { applyDefaultsWithin } from './defaults.ts'
import type { Field, Schema } from './schema.ts'
import { pruneUnknownFields } from './structural.ts'

const envelopes = new WeakMap<Schema, Schema>()

/** What today's defaults may add to an object that was written before them, in bytes of JSON: more than a request could add. */
const maxDefaultBytes = 16 * 1024 * 1024

/** What every object has: the rest passes through. */
function envelopeOf(schema: Schema): Schema {
  let envelope = envelopes.get(schema)
  if (!envelope) {
    envelope = makeEnvelope(schema)
    envelopes.set(schema, envelope)
  }
  return envelope
}

function makeEnvelope(schema: Schema): Schema {
  const field = (name: string): [string, Field] => [name, schema.fields?.get(name) as Field]
  return { type: 'object', definition: schema.definition, preserveUnknownFields: true, fields: new Map(['apiVersion', 'kind', 'metadata'].map(field)) }
}

/**
 * Decodes a request's value by the schema of {@link compileStructural}. Takes the value over. Defaults are left to applyDefaults.
 * @throws StatusError BadRequest when metadata, of the object or of an embedded one, is malformed
 */
export function decodeStructural(value: unknown, schema: Schema, options: DecodeOptions): Decoded {
  const { object, unknownFields } = decode(value, envelopeOf(schema), options)
  const pruned = pruneUnknownFields(object, schema)
  dropNulls(object, schema)
  try {
    refuseTooLarge(object)
  } catch (error) {
    if (error instanceof DecodeError) throw cannotBeHandled(object, String(object.kind), error)
    throw error
  }
  const embedded: string[] = []
  coerceEmbedded(object, schema, '', embedded)
  return { object, unknownFields: options.unknown === 'collect' ? [...unknownFields, ...pruned, ...embedded.sort()] : [] }
}

/**
 * Brings an object of the store into the form that its version's schema asks for today: a CRD may have changed since it was written.
 * Defaults that would make it huge are left out: it must stay readable.
 * @returns whether anything had to change; the object is changed in place
 */
export function normalizeStored(object: Record<string, unknown>, schema: Schema): boolean {
  const pruned = pruneUnknownFields(object, schema).length > 0
  const nulls = dropNulls(object, schema)
  const defaulted = applyDefaultsWithin(object, schema, maxDefaultBytes)
  const metadata = object.metadata as { generation?: number }
  const repaired = metadata.generation === undefined
  if (repaired) metadata.generation = 1
  return pruned || nulls || defaulted || repaired
}

/** Removes nulls of fields that are neither nullable nor have a default to put in their place. */
function dropNulls(value: unknown, schema: Schema | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false
  let changed = false
  if (Array.isArray(value)) {
    for (const item of value) if (dropNulls(item, schema?.type === 'array' ? schema.element : undefined)) changed = true
    return changed
  }
  const object = value as Record<string, unknown>
  for (const name of Object.keys(object)) {
    const field = schema?.fields?.get(name)
    const child = field ? field.schema : schema?.type === 'map' ? schema.element : undefined
    const replacement = field ? field.default : schema?.elementDefault
    if (object[name] === null && child && !child.nullable && replacement === undefined) {
      delete object[name]
      changed = true
    } else if (dropNulls(object[name], child)) changed = true
  }
  return changed
}

/** Embedded objects have metadata like all objects. */
function coerceEmbedded(value: unknown, schema: Schema | undefined, path: string, unknown: string[]): void {
  if (!schema || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) coerceEmbedded(item, schema.element, `${path}[${index}]`, unknown)
    return
  }
  const object = value as Record<string, unknown>
  if (schema.embeddedResource) coerceMetadata(object, path, unknown)
  for (const name of Object.keys(object)) {
    const child = schema.fields?.get(name)?.schema ?? (schema.type === 'map' ? schema.element : undefined)
    if (child && !child.definition) coerceEmbedded(object[name], child, path === '' ? name : `${path}.${name}`, unknown)
  }
}

function coerceMetadata(object: Record<string, unknown>, path: string, unknown: string[]): void {
  for (const name of ['apiVersion', 'kind']) {
    if (object[name] !== undefined && typeof object[name] !== 'string')
      throw badRequest(`${path}.${name}: Invalid value: ${stringifyExactly(object[name])}: must be a string`)
  }
  if (!isObject(object.metadata)) return
  try {
    const { unknownFields } = decode(object.metadata, schemaOfDefinition('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'), { unknown: 'collect' })
    unknown.push(...unknownFields.map((field) => `${path}.metadata.${field}`))
  } catch (error) {
    if (isStatus(error)) throw badRequest(`${path}.metadata: Invalid value: ${stringifyExactly(object.metadata)}: ${error.message}`)
    throw error
  }
}
