/**
 * Turns parsed JSON into an object of its kind (L1): checks types, drops (or lists) unknown fields, treats null as absent and brings
 * times, quantities and bytes into their canonical form; zero values stand where Go has them, and nowhere else (./zeros.ts). Errors read like those of Go's JSON decoder, because tools match on them.
 * Upstream: apimachinery/pkg/runtime/serializer/json, sigs.k8s.io/json, apiserver/pkg/endpoints/handlers/create.go (v1.36).
 * Defaults are ./defaults.ts, validation is the kinds' matter.
 */
import { formatMicroTime, formatTime, parseTime } from '#base/time'
import { canonicalQuantity, QuantityError } from '../machinery/quantity.ts'
import { badRequest, StatusError } from '../machinery/status.ts'
import type { Schema } from './schema.ts'
import { fillZeros, isOmitted, zeroOf } from './zeros.ts'

export interface DecodeOptions {
  /** 'collect' also lists unknown fields (fieldValidation Warn and Strict). They are dropped either way. */
  readonly unknown: 'drop' | 'collect'
  /** 'keep' leaves everything as the client wrote it: an applied configuration claims what it says, its nulls too. Otherwise zero values stand where Go has them. */
  readonly absent?: 'keep' | undefined
  /** Fields of the object that are decoded already: they stay as they are. */
  readonly decoded?: ReadonlySet<string> | undefined
}

export interface Decoded {
  readonly object: Record<string, unknown>
  /** Paths in document order, such as `spec.containers[0].imag`. */
  readonly unknownFields: readonly string[]
}

/** A value that does not fit the schema; the message is that of Go's JSON decoder. */
export class DecodeError extends Error {
  /** The message of the converter that upstream runs after a strategic merge patch, which reads no JSON. */
  readonly converterMessage: string

  constructor(message: string, converterMessage = message) {
    super(message)
    this.name = 'DecodeError'
    this.converterMessage = converterMessage
  }
}

interface Context {
  readonly unknown: string[] | undefined
  readonly fills: boolean
  readonly decoded: ReadonlySet<string> | undefined
}

/** Where a value stands: in a field of a struct, in an item of a list or in an entry of a map, and where that stands. Texts are made of it when one is wanted. */
interface Place {
  readonly parent: Place | undefined
  readonly key: string | number
  /** The struct that holds the field; absent for what is no field. */
  readonly struct?: Schema | undefined
}

/** The dotted names of the fields, for Go's texts. */
function fieldOf(place: Place | undefined): string {
  if (!place) return ''
  const before = fieldOf(place.parent)
  if (!place.struct) return before
  return before === '' ? String(place.key) : `${before}.${place.key}`
}

/** The full path, for ours. */
function pathOf(place: Place | undefined): string {
  if (!place) return ''
  const before = pathOf(place.parent)
  if (typeof place.key === 'number') return `${before}[${place.key}]`
  return before === '' ? place.key : `${before}.${place.key}`
}

/** The struct of the innermost field. */
function structOf(place: Place | undefined): Schema | undefined {
  return place && (place.struct ?? structOf(place.parent))
}

/**
 * Decodes `value` by `schema`. Takes the value over: it is changed in place and returned.
 * @throws StatusError BadRequest `<Kind> in version "<version>" cannot be handled as a <Kind>: <Go's text>`; its cause is the DecodeError.
 */
export function decode(value: unknown, schema: Schema, options: DecodeOptions): Decoded {
  const context: Context = { unknown: options.unknown === 'collect' ? [] : undefined, fills: options.absent !== 'keep', decoded: options.decoded }
  try {
    const object = decodeValue(value, schema, undefined, context) as Record<string, unknown>
    return { object, unknownFields: context.unknown ?? [] }
  } catch (error) {
    if (error instanceof DecodeError) throw cannotBeHandled(value, shortName(schema), error)
    throw error
  }
}

/** As many as upstream's decoder keeps (sigs.k8s.io/json). */
const mostStrictProblems = 100

/** The strict errors of a document, at most the first 100, as warnings (`unknown field "x"`) or for {@link strictDecodingError}. */
export function strictProblems(unknownFields: readonly string[], duplicates: readonly string[]): string[] {
  const unknown = unknownFields.slice(0, mostStrictProblems).map((path) => `unknown field "${path}"`)
  return [...unknown, ...duplicates.slice(0, mostStrictProblems - unknown.length).map((path) => `duplicate field "${path}"`)]
}

/** The 400 of fieldValidation=Strict. */
export function strictDecodingError(object: { kind?: unknown; apiVersion?: unknown }, problems: readonly string[]): StatusError {
  return cannotBeHandled(object, typeof object.kind === 'string' ? object.kind : '', new DecodeError(`strict decoding error: ${problems.join(', ')}`))
}

/** The 400 for a body that cannot become `kind`, with upstream's text. `value` tells the kind and version that the body claims. */
export function cannotBeHandled(value: unknown, kind: string, cause: Error): StatusError {
  const claimed = typeof value === 'object' && value !== null ? (value as { kind?: unknown; apiVersion?: unknown }) : {}
  if (typeof claimed.kind === 'string' && claimed.kind !== '' && typeof claimed.apiVersion === 'string') {
    const version = claimed.apiVersion.slice(claimed.apiVersion.indexOf('/') + 1)
    return new StatusError('BadRequest', `${claimed.kind} in version "${version}" cannot be handled as a ${kind}: ${cause.message}`, { cause })
  }
  return badRequest(cause.message)
}

function decodeValue(value: unknown, schema: Schema, place: Place | undefined, context: Context): unknown {
  switch (schema.type) {
    case 'object':
      return decodeObject(value, schema, place, context)
    case 'array':
      return decodeArray(value, schema, place, context)
    case 'map':
      return decodeMap(value, schema, place, context)
    case 'string':
      return decodeString(value, schema, place)
    case 'integer':
      return decodeInteger(value, schema, place)
    case 'boolean':
      return typeof value === 'boolean' ? value : mismatch(value, schema, place)
    case 'number':
      return decodeNumber(value, schema, place)
    case 'any':
      if (schema.format !== 'fields-v1') refuseTooLarge(value, place)
      return value
  }
}

function decodeObject(value: unknown, schema: Schema, place: Place | undefined, context: Context): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return mismatch(value, schema, place)
  const object = value as Record<string, unknown>
  const fields = schema.fields
  if (!fields) return object
  const finished = place === undefined ? context.decoded : undefined
  for (const key of Object.keys(object)) {
    if (finished?.has(key)) continue
    const field = fields.get(key)
    if (!field) {
      if (schema.preserveUnknownFields) continue
      context.unknown?.push(pathOf({ parent: place, key }))
      delete object[key]
      continue
    }
    const member = object[key]
    // Values that come in process may hold undefined, which JSON would have left out.
    if (member === null || member === undefined) {
      if (member === undefined || context.fills) delete object[key]
      // Where the type wants a list, its null is an empty one.
      if (member === null && context.fills && field.alwaysPresent && field.required && field.schema.type === 'array') object[key] = []
      continue
    }
    // A string of a plain string field is the commonest member by far.
    if (typeof member === 'string' && field.schema.type === 'string' && field.schema.format === undefined) {
      if (member === '' && context.fills && isOmitted(member, field)) delete object[key]
      continue
    }
    const decoded = decodeValue(member, field.schema, { parent: place, key, struct: schema }, context)
    if (context.fills && isOmitted(decoded, field)) delete object[key]
    else if (decoded !== member) object[key] = decoded
  }
  return context.fills ? fillZeros(object, schema) : object
}

function decodeArray(value: unknown, schema: Schema, place: Place | undefined, context: Context): unknown {
  if (!Array.isArray(value)) return mismatch(value, schema, place)
  const element = schema.element
  if (!element) return value
  for (let index = 0; index < value.length; index++) {
    const item: unknown = value[index]
    if (item === null && !context.fills) continue
    const decoded = item === null ? zeroOf(element) : decodeValue(item, element, { parent: place, key: index }, context)
    if (decoded !== item) value[index] = decoded
  }
  return value
}

function decodeMap(value: unknown, schema: Schema, place: Place | undefined, context: Context): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return mismatch(value, schema, place)
  const element = schema.element
  if (!element) return value
  const map = value as Record<string, unknown>
  for (const key of Object.keys(map)) {
    const member = map[key]
    if (typeof member === 'string' && element.type === 'string' && element.format === undefined) continue
    if (member === undefined) {
      delete map[key]
      continue
    }
    if (member === null && !context.fills) continue
    const decoded = member === null ? zeroOf(element) : decodeValue(member, element, { parent: place, key }, context)
    if (decoded !== member) map[key] = decoded
  }
  return map
}

function decodeString(value: unknown, schema: Schema, place: Place | undefined): unknown {
  switch (schema.format) {
    case 'int-or-string':
      if (typeof value === 'string') return value
      if (typeof value === 'number' && fitsInt32(value)) return value
      throw new DecodeError(`json: cannot unmarshal ${goValue(value)} into Go value of type int32`)
    case 'quantity':
      return decodeQuantity(value)
    case 'date-time':
    case 'micro-time':
      return decodeTime(value, schema.format)
    case 'byte':
      if (typeof value !== 'string') return mismatch(value, schema, place)
      return checkBase64(value)
    default:
      return typeof value === 'string' ? value : mismatch(value, schema, place)
  }
}

/** Quantities that are canonical at sight: the commonest ones. */
const canonical = /^[1-9]\d{0,2}(Ki|Mi|Gi|Ti|k|M|G|T)?$/

function decodeQuantity(value: unknown): string {
  if (typeof value === 'string' && canonical.test(value)) return value
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint') throw new DecodeError(quantityFault)
  try {
    return canonicalQuantity(typeof value === 'number' ? value : String(value).trim())
  } catch (error) {
    if (error instanceof QuantityError) throw new DecodeError(error.message)
    throw error
  }
}

const quantityFault = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

/** The dates that every year has, but for February 29, and the time of day. */
const date = /\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))/
const timeOfDay = /T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d/
/** Times that are canonical at sight: those that the server itself has written. */
const canonicalTimes = {
  'date-time': new RegExp(`^${date.source}${timeOfDay.source}Z$`),
  'micro-time': new RegExp(`^${date.source}${timeOfDay.source}\\.\\d{6}Z$`),
} as const

function decodeTime(value: unknown, format: 'date-time' | 'micro-time'): string {
  if (typeof value === 'string' && canonicalTimes[format].test(value)) return value
  if (typeof value !== 'string') throw new DecodeError(`json: cannot unmarshal ${goValue(value)} into Go value of type string`)
  const epochMs = parseTime(value)
  if (epochMs === undefined) {
    const layout = format === 'date-time' ? '2006-01-02T15:04:05Z07:00' : '2006-01-02T15:04:05.000000Z07:00'
    const { rest, expected } = timeFault(value)
    throw new DecodeError(`parsing time ${JSON.stringify(value)} as "${layout}": cannot parse ${JSON.stringify(rest)} as "${expected}"`)
  }
  return format === 'date-time' ? formatTime(Math.floor(epochMs / 1000) * 1000) : formatMicroTime(epochMs)
}

/** Where Go's time parser would stop. */
function timeFault(text: string): { rest: string; expected: string } {
  const steps: readonly (readonly [RegExp, string])[] = [
    [/^\d{4}/, '2006'],
    [/^-/, '-'],
    [/^\d\d/, '01'],
    [/^-/, '-'],
    [/^\d\d/, '02'],
    [/^T/, 'T'],
    [/^\d\d/, '15'],
    [/^:/, ':'],
    [/^\d\d/, '04'],
    [/^:/, ':'],
    [/^\d\d(\.\d+)?/, '05'],
    [/^(Z|[+-]\d\d:\d\d)$/, 'Z07:00'],
  ]
  let rest = text
  for (const [pattern, expected] of steps) {
    const match = pattern.exec(rest)
    if (!match) return { rest, expected }
    rest = rest.slice(match[0].length)
  }
  return { rest, expected: '' }
}

/** Go's base64 decoder: standard alphabet, padding required, line breaks ignored. Returns the text unchanged but for line breaks. */
function checkBase64(text: string): string {
  const clean = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, '') : text
  if (clean.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(clean)) return clean
  const bad = clean.search(/[^A-Za-z0-9+/]/)
  // Padding in the wrong place is reported where it stands, a missing one at the end of the last whole group.
  const at = bad >= 0 && !(clean[bad] === '=' && bad % 4 >= 2) ? bad : bad >= 0 ? Math.min(bad + 1, clean.length) : clean.length - (clean.length % 4)
  throw new DecodeError(`illegal base64 data at input byte ${at}`)
}

/** A field that upstream holds as float64 takes an integer of any length. */
function decodeNumber(value: unknown, schema: Schema, place: Place | undefined): number {
  if (typeof value !== 'number' && typeof value !== 'bigint') return mismatch(value, schema, place)
  refuseTooLarge(value, place)
  return Number(value)
}

/** @throws DecodeError naming the first number that no float64 can hold; the parser makes Infinity of it, which has no JSON. */
export function refuseTooLarge(value: unknown, place?: Place): void {
  const found = infiniteIn(value, place, false)
  if (!found) return
  throw new DecodeError(`json: cannot unmarshal number into Go value of type float64: ${pathOf(infiniteIn(value, place, true)?.place)} is beyond its range`)
}

/** The first infinite number. Most values have none, so only the second look notes the places that lead to it. */
function infiniteIn(value: unknown, place: Place | undefined, notesPlaces: boolean): { readonly place: Place | undefined } | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : { place }
  if (typeof value !== 'object' || value === null) return undefined
  const isList = Array.isArray(value)
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key]
    if (typeof member !== 'object' && typeof member !== 'number') continue
    const found = infiniteIn(member, notesPlaces ? { parent: place, key: isList ? Number(key) : key } : place, notesPlaces)
    if (found) return found
  }
  return undefined
}

function decodeInteger(value: unknown, schema: Schema, place: Place | undefined): number {
  if (typeof value === 'bigint') throw new DecodeError(intoField(`number ${value}`, place, goType(schema)), converterFault(value, schema))
  if (typeof value !== 'number') return mismatch(value, schema, place)
  if (!Number.isSafeInteger(value) || (schema.format === 'int32' && !fitsInt32(value))) {
    throw new DecodeError(intoField(`number ${Number.isInteger(value) ? BigInt(value) : value}`, place, goType(schema)), converterFault(value, schema))
  }
  return value
}

function fitsInt32(value: number): boolean {
  return Number.isInteger(value) && value >= -2_147_483_648 && value <= 2_147_483_647
}

function mismatch(value: unknown, schema: Schema, place: Place | undefined): never {
  throw new DecodeError(intoField(goValue(value), place, goType(schema)), converterFault(value, schema))
}

/** Upstream: fromUnstructured of apimachinery/pkg/runtime/converter.go. */
function converterFault(value: unknown, schema: Schema): string {
  const source = goKind(value)
  switch (schema.type) {
    case 'object':
      return `cannot restore struct from: ${source}`
    case 'map':
      return `cannot restore map from ${source}`
    case 'array':
      return `cannot restore slice from ${source}`
    case 'integer':
      return source === 'float64' ? `cannot convert float64 to ${goType(schema)}` : `unrecognized type: ${goType(schema)}`
    case 'string':
      if (schema.format === 'byte') return `cannot restore slice from ${source}`
      return source === 'int64' ? `cannot convert int64 to ${goType(schema)}` : 'unrecognized type: string'
    default:
      return `unrecognized type: ${goType(schema)}`
  }
}

/** What Go calls the kind of a value that was read from JSON. */
function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'slice'
  if (typeof value === 'bigint') return 'int64'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'string' ? 'string' : 'map'
}

function intoField(what: string, place: Place | undefined, type: string): string {
  const struct = structOf(place)
  return struct
    ? `json: cannot unmarshal ${what} into Go struct field ${shortName(struct)}.${fieldOf(place)} of type ${type}`
    : `json: cannot unmarshal ${what} into Go value of type ${type}`
}

/** What Go's JSON decoder calls the kind of a value. */
export function goValue(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'bigint') return 'number'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

function goType(schema: Schema): string {
  switch (schema.type) {
    case 'object':
      return `${versionOf(schema)}.${shortName(schema)}`
    case 'array':
      return schema.element ? `[]${goType(schema.element)}` : '[]interface {}'
    case 'map':
      return schema.element ? `map[string]${goType(schema.element)}` : 'map[string]interface {}'
    case 'integer':
      return schema.format === 'int32' ? 'int32' : 'int64'
    case 'number':
      return 'float64'
    case 'boolean':
      return 'bool'
    case 'string':
      return schema.format === 'byte' ? '[]uint8' : schema.definition ? `${versionOf(schema)}.${shortName(schema)}` : 'string'
    case 'any':
      return 'interface {}'
  }
}

/** 'Container' of io.k8s.api.core.v1.Container. */
function shortName({ definition = '' }: Schema): string {
  return definition.slice(definition.lastIndexOf('.') + 1)
}

function versionOf({ definition = '' }: Schema): string {
  const parts = definition.split('.')
  return parts[parts.length - 2] ?? ''
}
