/**
 * CEL declarations from schemas (L1): which type a field of a custom resource has in expressions, how large its data can be, and how
 * its JSON becomes a value. What has no type in the schema is not declared, and expressions cannot reach it.
 * Upstream: apiserver/pkg/cel/common/schemas.go, pkg/cel/types.go, apiextensions-apiserver/pkg/apiserver/schema/cel/model (v1.36).
 */
import { greatest } from '#base/extremes'
import { parseTime } from '#base/time'
import { type CostEstimate, fixed, range, type SizeEstimator } from '#cel/cost/model'
import { type JsonConverter, JsonMap, jsonInt } from '#cel/json'
import { parseDuration, parseTimestamp } from '#cel/time'
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  durationType,
  dynType,
  intType,
  listType,
  mapType,
  objectType,
  stringType,
  timestampType,
} from '#cel/types'
import { Double, EvaluationError, type Value } from '#cel/values'
import type { JSONSchemaProps } from '../gen/types/apiextensions.v1.ts'
import { escapeIdentifier } from './escaping.ts'
import { DeclaredObject, listOf } from './schemaValues.ts'

export interface Declaration {
  readonly type: CelType
  /** The most characters of a string, bytes of bytes, items of a list or entries of a map; 0 for all else, as upstream has it. */
  readonly maxElements: number
  /** The fewest bytes that a value takes as JSON. */
  readonly minSerializedSize: number
  /** Of lists and maps. */
  readonly element?: Declaration | undefined
  readonly key?: Declaration | undefined
  /** Of objects, by the name that expressions write. */
  readonly fields?: ReadonlyMap<string, DeclaredField> | undefined
  /** @throws EvaluationError when the JSON is not of this type */
  readonly toValue: JsonConverter
}

export interface DeclaredField {
  /** The name in JSON. */
  readonly name: string
  readonly declaration: Declaration
  readonly required: boolean
}

const maxRequestBytes = 3 * 1024 * 1024
const maxTimeLength = 32
const dateLength = 12

/**
 * The declaration of a schema; undefined when expressions cannot see data of this schema.
 * @param name of the type, if it is an object's; types of nested objects are named after their path below it.
 * @param isResourceRoot whether apiVersion, kind, metadata.name and metadata.generateName are there in any case.
 */
export function declareSchema(props: JSONSchemaProps, name: string, isResourceRoot: boolean): Declaration | undefined {
  const declaration = declareValue(isResourceRoot && !props['x-kubernetes-int-or-string'] ? withResourceFields(props) : props, name)
  return declaration && { ...declaration, toValue: nullChecked(declaration.toValue, props.nullable ?? false) }
}

function declareValue(props: JSONSchemaProps, name: string): Declaration | undefined {
  if (props['x-kubernetes-int-or-string']) {
    return { type: dynType, maxElements: maxStringLength(props), minSerializedSize: 1, toValue: intOrString }
  }
  switch (props.type) {
    case 'array':
      return declareList(props, name)
    case 'object':
      return declareMap(props, name) ?? declareObject(props, name)
    case 'string':
      return declareString(props)
    case 'boolean':
      return scalar(boolType, 4, (json) => expect(json, typeof json === 'boolean', 'bool') as boolean)
    case 'number':
      return scalar(doubleType, 1, (json) => new Double(Number(expect(json, typeof json === 'number' || typeof json === 'bigint', 'float'))))
    case 'integer':
      return scalar(intType, 1, (json) => jsonInt(expect(json, isWhole(json), 'int') as number | bigint))
    default:
      return undefined
  }
}

const scalar = (type: CelType, minSerializedSize: number, toValue: JsonConverter): Declaration => ({ type, maxElements: 0, minSerializedSize, toValue })

const isWhole = (json: unknown): json is number | bigint => typeof json === 'bigint' || Number.isInteger(json)

function expect(json: unknown, holds: boolean, wanted: string): unknown {
  if (holds) return json
  throw new EvaluationError(`invalid data, expected ${wanted}, got ${json === null ? 'null' : Array.isArray(json) ? 'array' : typeof json}`)
}

function nullChecked(convert: JsonConverter, nullable: boolean): JsonConverter {
  return (json) => {
    if (json !== null && json !== undefined) return convert(json)
    if (nullable) return null
    throw new EvaluationError('invalid data, got null for schema with nullable=false')
  }
}

function intOrString(json: unknown): Value {
  if (typeof json === 'string') return json
  if (isWhole(json)) return jsonInt(json)
  throw new EvaluationError('invalid data, expected XIntOrString value to be either a string or integer')
}

const nested = (props: JSONSchemaProps, name: string): Declaration | undefined => declareSchema(props, name, props['x-kubernetes-embedded-resource'] ?? false)

const notNegative = (value: number): number => Math.max(0, value)

function declareList(props: JSONSchemaProps, name: string): Declaration | undefined {
  const items = props.items as JSONSchemaProps | undefined
  const element = items && nested(items, `${name}.@idx`)
  if (!element) return undefined
  const maxElements = props.maxItems === undefined ? Math.floor((maxRequestBytes - 2) / (element.minSerializedSize + 1)) : notNegative(props.maxItems)
  const wrap = listOf(props, element.toValue)
  return {
    type: listType(element.type),
    maxElements,
    minSerializedSize: 2,
    element,
    toValue: (json) => wrap(expect(json, Array.isArray(json), 'an array for the provided schema with type=array') as unknown[]),
  }
}

const isJsonObject = (json: unknown): boolean => typeof json === 'object' && !Array.isArray(json)
const asObject = (json: unknown): Record<string, unknown> =>
  expect(json, isJsonObject(json), 'a map for the provided schema with type=object') as Record<string, unknown>

function declareMap(props: JSONSchemaProps, name: string): Declaration | undefined {
  const { additionalProperties } = props
  if (typeof additionalProperties !== 'object' || additionalProperties === null) return undefined
  const element = nested(additionalProperties as JSONSchemaProps, `${name}.@elem`)
  if (!element) return undefined
  const maxElements = props.maxProperties === undefined ? Math.floor((maxRequestBytes - 2) / (element.minSerializedSize + 6)) : notNegative(props.maxProperties)
  const key = scalar(stringType, 2, (json) => json as string)
  return {
    type: mapType(stringType, element.type),
    maxElements,
    minSerializedSize: 2,
    element,
    key,
    toValue: (json) => new JsonMap(asObject(json), element.toValue),
  }
}

function declareObject(props: JSONSchemaProps, name: string): Declaration | undefined {
  // A map whose values are not declared is not declared either.
  if (typeof props.additionalProperties === 'object' && props.additionalProperties !== null) return undefined
  const required = new Set(props.required)
  const fields = new Map<string, DeclaredField>()
  let minSerializedSize = 2
  for (const [property, schema] of Object.entries(props.properties ?? {})) {
    const escaped = escapeIdentifier(property)
    const declaration = nested(schema, `${name}.${escaped ?? property}`)
    if (!declaration) continue
    if (escaped !== undefined) fields.set(escaped, { name: property, declaration, required: required.has(property) })
    // The quotes, the colon and the comma; a default need not be written.
    if (required.has(property) && schema.default === undefined) minSerializedSize += property.length + declaration.minSerializedSize + 4
  }
  const types = new Map([...fields].map(([field, { declaration }]) => [field, declaration.type]))
  return { type: objectType(name, types), maxElements: 0, minSerializedSize, fields, toValue: (json) => new DeclaredObject(asObject(json), fields) }
}

function withResourceFields(props: JSONSchemaProps): JSONSchemaProps {
  const text: JSONSchemaProps = { type: 'string' }
  const metadata = props.properties?.metadata
  const complete = metadata?.properties?.name && metadata.properties.generateName
  return {
    ...props,
    properties: {
      ...props.properties,
      kind: text,
      apiVersion: text,
      metadata: complete ? metadata : { type: 'object', properties: { name: text, generateName: text } },
    },
  }
}

function declareString(props: JSONSchemaProps): Declaration {
  const text = (json: unknown): string => expect(json, typeof json === 'string', 'string') as string
  const parsed =
    (what: string, parse: (text: string) => Value | undefined): JsonConverter =>
    (json) => {
      const value = parse(text(json))
      if (value === undefined) throw new EvaluationError(`Invalid ${what} ${text(json)}`)
      return value
    }
  switch (props.format) {
    case 'byte':
      return {
        type: bytesType,
        maxElements: props.maxLength === undefined ? maxRequestBytes - 2 : notNegative(props.maxLength),
        minSerializedSize: 2,
        toValue: parsed('byte formatted string', decodeBase64),
      }
    case 'duration':
      return { type: durationType, maxElements: maxTimeLength, minSerializedSize: 3, toValue: parsed('duration', parseDuration) }
    case 'date':
      return {
        type: timestampType,
        maxElements: dateLength,
        minSerializedSize: dateLength,
        toValue: parsed('date formatted string', (day) => parseTimestamp(`${day}T00:00:00Z`)),
      }
    case 'date-time':
      return { type: timestampType, maxElements: maxTimeLength, minSerializedSize: 21, toValue: parsed('date-time formatted string', parseDateTime) }
    default:
      return { type: stringType, maxElements: maxStringLength(props), minSerializedSize: 2, toValue: text }
  }
}

/** In bytes: a character of JSON takes up to four. */
function maxStringLength({ maxLength, enum: values, 'x-kubernetes-int-or-string': isIntOrString }: JSONSchemaProps): number {
  if (maxLength !== undefined) return notNegative(maxLength) * 4
  if (!isIntOrString && values && values.length > 0) {
    return greatest(
      values.map((value) => (typeof value === 'string' ? new TextEncoder().encode(value).length : 0)),
      0,
    )
  }
  return maxRequestBytes - 2
}

/** OpenAPI's date-time is RFC 3339, in small letters too. */
const parseDateTime = (text: string): Value | undefined => (parseTime(text) === undefined ? undefined : parseTimestamp(text.toUpperCase()))

function decodeBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

/** Tells the largest sizes of data below a declared root. Every variable of an expression is taken to be of the root's type, as upstream does. */
export function declaredSizes(root: Declaration): SizeEstimator {
  return ({ path }): CostEstimate | undefined => {
    if (!path || path.length === 0) return undefined
    let node: Declaration | undefined = root
    for (const step of path.slice(1)) {
      node = step === '@items' || step === '@values' ? node.element : step === '@keys' ? node.key : node.fields?.get(step)?.declaration
      if (!node) return undefined
    }
    return node.maxElements === 0 ? fixed(0) : range(0, node.maxElements)
  }
}
