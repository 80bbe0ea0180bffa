/**
 * From a request's body to an object of the served kind (L3): media type, JSON or YAML, apiVersion and kind, strict fields, defaults.
 * Upstream: handlers/create.go and its serializers (v1.36).
 */
import { JsonSyntaxError, parseJson, parsingJson } from '#api/machinery/json'
import { groupVersion, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { isObject } from '#api/machinery/objects'
import { badRequest, isStatus, StatusError } from '#api/machinery/status'
import { parseYaml, YamlSyntaxError } from '#api/machinery/yaml'
import { ProtobufError } from '#api/protobuf/decode'
import { decodeProtobuf, openEnvelope, protobufMediaType } from '#api/protobuf/envelope'
import { schemaFor } from '#api/schema/builtIn'
import { cannotBeHandled, type Decoded, type DecodeOptions, decode, goValue, strictDecodingError, strictProblems } from '#api/schema/decode'
import { applyDefaults } from '#api/schema/defaults'
import type { Schema } from '#api/schema/schema'
import { decodeStructural } from '#api/schema/structuralDecode'
import { append } from '#base/extremes'
import { deepCopy } from '#base/frozen'
import type { Steps } from '#base/steps'
import type { YamlThread } from '../yaml/yamlThread.ts'
import { tracingDefaults } from './defaultedFields.ts'
import { inSteps, isLargeObject, isLargeValue, turn } from './fairLoop.ts'
import type { ParsedBody, RequestBody, ServerRequest } from './request.ts'

/** Upstream's limit on what a resource handler reads. */
export const maxBodyBytes = 3 * 1024 * 1024
/** Bound of what defaults may add: a larger object could not be stored anyway. */
const maxDefaultBytes = 8 * 1024 * 1024

export const yamlType = 'application/yaml'

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

/** The kind that a body must have. */
export interface ExpectedKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly schema: Schema
  /** Group versions of the same shape that a body may name as well. */
  readonly otherVersions?: readonly string[] | undefined
  /** True for a custom resource: validation, not decoding, checks the types of its fields. */
  readonly structural?: boolean | undefined
  /** The kind's computed defaults, after the schema's constants. */
  readonly defaults?: ((object: KubeObject) => void) | undefined
}

export function fieldValidationOf(request: ServerRequest): FieldValidation {
  const text = request.query.get('fieldValidation') ?? ''
  if (text === '') return 'Warn'
  if (text === 'Ignore' || text === 'Warn' || text === 'Strict') return text
  const kind = request.info?.verb === 'patch' ? 'PatchOptions' : request.info?.verb === 'update' ? 'UpdateOptions' : 'CreateOptions'
  const body = `Unsupported value: ${JSON.stringify(text)}: supported values: "Ignore", "Strict", "Warn"`
  throw new StatusError('Invalid', `${kind}.meta.k8s.io "" is invalid: fieldValidation: ${body}`, {
    details: { group: 'meta.k8s.io', kind, causes: [{ reason: 'FieldValueNotSupported', message: body, field: 'fieldValidation' }] },
  })
}

/** The media type without parameters, lower-case. */
export function mediaTypeOf(contentType: string): string {
  const semicolon = contentType.indexOf(';')
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
}

/**
 * More objects and lists than this in one body are refused: real ones have a hundredth, and each may cost a validation. A body of three
 * megabytes has room for a million, which would block the event loop for ten seconds.
 */
const maxComposites = 100_000
/** Shorter bodies cannot hold that many: each takes two bytes. */
const countedFromBytes = 2 * maxComposites

/**
 * The body's JSON value; in-process callers' values are copied, because decoding changes them.
 * @throws BadRequest with what is wrong with the text, or with what `refuse` makes of it
 */
export function parseBody(body: RequestBody, duplicates: boolean, refuse: Refuse = refusePlainly): ParsedBody {
  if (body.type === 'value') return { value: deepCopy(body.value), duplicates: [] }
  if (body.parsed) return body.parsed
  if (!isJson(body)) return parseOther(body, refuse)
  return body.bytes.length === 0 ? noBody : refusing(refuse, () => parseJsonBody(body.bytes, duplicates))
}

/** {@link parseBody}, with pauses. */
function* parsingBody(body: RequestBody, duplicates: boolean, refuse: Refuse): Steps<ParsedBody> {
  if (body.type === 'value' || !isJson(body) || body.bytes.length === 0) return parseBody(body, duplicates, refuse)
  const parsing = parsingJsonBody(body.bytes, duplicates)
  for (;;) {
    const step = refusing(refuse, () => parsing.next())
    if (step.done) return step.value
    yield
  }
}

type Refuse = (error: Error) => StatusError
type BytesBody = Extract<RequestBody, { type: 'bytes' }>

const noBody: ParsedBody = { value: undefined, duplicates: [] }

function isJson({ contentType }: BytesBody): boolean {
  const mediaType = mediaTypeOf(contentType)
  return mediaType === '' || mediaType === 'application/json'
}

/** Replaces a syntax error by what `refuse` makes of it. */
function refusing<T>(refuse: Refuse, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof JsonSyntaxError ? refuse(error) : error
  }
}

/**
 * A JSON body's value.
 * @throws JsonSyntaxError, RequestEntityTooLarge
 */
export function parseJsonBody(bytes: Buffer, duplicates: boolean): ParsedBody {
  return ofFewComposites(bytes, parseJson(bytes, { duplicates }))
}

/** {@link parseJsonBody}, with pauses. */
function* parsingJsonBody(bytes: Buffer, duplicates: boolean): Steps<ParsedBody> {
  return ofFewComposites(bytes, yield* parsingJson(bytes, { duplicates }))
}

function ofFewComposites(json: Buffer, parsed: ParsedBody): ParsedBody {
  if (hasManyBrackets(json)) refuseTooMany(parsed.value, json.length)
  return parsed
}

/** Costs much less than to count the objects and lists themselves: each of them begins with a bracket. */
function hasManyBrackets(json: Buffer): boolean {
  if (json.length < countedFromBytes) return false
  let brackets = 0
  for (const byte of json) if ((byte === 0x7b || byte === 0x5b) && ++brackets > maxComposites) return true
  return false
}

/** @throws RequestEntityTooLarge */
function refuseTooMany(value: unknown, bytes: number): void {
  if (bytes < countedFromBytes) return
  let composites = 0
  const waiting: unknown[] = [value]
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    if (typeof one !== 'object' || one === null) continue
    if (++composites > maxComposites) {
      throw new StatusError('RequestEntityTooLarge', `Request entity too large: it holds more than ${maxComposites} objects and lists`)
    }
    for (const key in one) {
      const member = (one as Record<string, unknown>)[key]
      if (typeof member === 'object' && member !== null) waiting.push(member)
    }
  }
}

const refusePlainly = (error: Error) => badRequest(error.message)

function parseOther(body: BytesBody, refuse: Refuse): ParsedBody {
  const mediaType = mediaTypeOf(body.contentType)
  if (mediaType !== yamlType && mediaType !== protobufMediaType) throw unsupportedMediaType(bodyTypes)
  const value = mediaType === yamlType ? parseYamlBody(body.bytes, refuse) : parseProtobufBody(body.bytes, refuse)
  refuseTooMany(value, body.bytes.length)
  return { value, duplicates: [] }
}

/** Only objects: no other value is an API object. */
function startsLikeJson(bytes: Buffer): boolean {
  for (const byte of bytes) {
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return byte === 0x7b
  }
  return false
}

/** Undefined for what is no JSON. @throws RequestEntityTooLarge */
function parseIfJson(bytes: Buffer): ParsedBody | undefined {
  try {
    return parseJsonBody(bytes, false)
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined
    throw error
  }
}

const bodyTypes = ['application/json', yamlType, protobufMediaType]

function parseProtobufBody(bytes: Buffer, refuse: Refuse): unknown {
  if (bytes.length === 0) return undefined
  try {
    return decodeProtobuf(bytes, (apiVersion, kind) => {
      const { group, version } = parseGroupVersion(apiVersion)
      return schemaFor(group, version, kind)
    })
  } catch (error) {
    if (error instanceof ProtobufError) throw refuse(error)
    throw error
  }
}

function parseYamlBody(bytes: Buffer, refuse: Refuse): unknown {
  try {
    return parseYaml(bytes.toString('utf8')) ?? null
  } catch (error) {
    if (error instanceof YamlSyntaxError) throw refuse(error)
    throw error
  }
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  return new StatusError('UnsupportedMediaType', `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`)
}

/** A request, and the thread that parses its long YAML. */
export interface BodySource {
  readonly request: ServerRequest
  readonly deps: { readonly yaml: YamlThread }
}

/** A body that can be parsed synchronously: long YAML was converted to JSON. `mediaType` overrides the Content-Type. */
export function readyBody({ deps }: BodySource, body: RequestBody, mediaType?: string): RequestBody | Promise<RequestBody> {
  if (body.type === 'value' || !deps.yaml.wants(body.bytes) || (mediaType ?? mediaTypeOf(body.contentType)) !== yamlType) return body
  return convertedUnlessJson(deps.yaml, body)
}

/** Clients send JSON as YAML, too. */
async function convertedUnlessJson(yaml: YamlThread, body: BytesBody): Promise<RequestBody> {
  const parsed = startsLikeJson(body.bytes) ? parseIfJson(body.bytes) : undefined
  if (parsed) return { ...body, parsed }
  return { type: 'bytes', bytes: await yaml.toJson(body.bytes), contentType: 'application/json' }
}

/** A value without the parts that need no decoding, and the object with them. */
export interface PartlyDecoded {
  readonly rest: unknown
  /** Fields of the rest that are decoded already. */
  readonly decoded?: ReadonlySet<string> | undefined
  joined(object: KubeObject): KubeObject
}

/** @param keep sets aside the parts of an in-process value that need no decoding */
export async function decodeBody(source: BodySource, expected: ExpectedKind, keep?: (value: unknown) => PartlyDecoded | undefined): Promise<KubeObject> {
  const { request } = source
  const validation = fieldValidationOf(request)
  const sent = await request.readBody(maxBodyBytes)
  const refuse = (error: Error) => unrecognized(sent, expected.kind, error)
  const ready = readyBody(source, sent)
  const body = ready instanceof Promise ? await ready.catch((error: unknown) => Promise.reject(isStatus(error, 'BadRequest') ? refuse(error) : error)) : ready
  const kept = body.type === 'value' ? keep?.(body.value) : undefined
  const given = [kept ? ({ ...body, value: kept.rest } as RequestBody) : body, validation !== 'Ignore', refuse] as const
  const hasManyBytes = isLargeObject(request.bodyBytes ?? 0)
  const parsed = objectIn(hasManyBytes ? await inSteps(parsingBody(...given), true) : parseBody(...given), sent, refuse)
  // A value of this process has no bytes.
  const isLarge = hasManyBytes || (body.type === 'value' && isLargeValue(parsed.value as object))
  if (isLarge) await turn()
  const traced = request.trace && tracingDefaults(request.trace, parsed.value)
  const decoded = decodeValue(request, parsed, expected, validation, kept?.decoded)
  traced?.(decoded)
  if (isLarge) await turn()
  const object = kept ? kept.joined(decoded) : decoded
  request.audit?.requestObject(object)
  if (isLarge) await turn()
  return object
}

/** As upstream reads it first: for the kind and version alone. A null is an object without fields. @throws what `refuse` makes of anything else */
function objectIn(parsed: ParsedBody, sent: RequestBody, refuse: Refuse): ParsedBody {
  const { value } = parsed
  if (value === null) return { ...parsed, value: {} }
  if (value === undefined) {
    const isProtobuf = sent.type === 'bytes' && mediaTypeOf(sent.contentType) === protobufMediaType
    throw refuse(isProtobuf ? new ProtobufError('empty data') : new JsonSyntaxError('unexpected end of JSON input'))
  }
  if (!isObject(value)) throw refuse(new JsonSyntaxError(`json: cannot unmarshal ${goValue(value)} into Go value of type ${typeMeta}`))
  for (const field of ['apiVersion', 'kind']) {
    const member = value[field]
    if (member === undefined || member === null || typeof member === 'string') continue
    throw refuse(new JsonSyntaxError(`json: cannot unmarshal ${goValue(member)} into Go struct field .${field} of type string`))
  }
  return parsed
}

/** Go's name of the structure that holds the two fields. */
const typeMeta = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'

/** Upstream: transformDecodeError of apiserver/pkg/endpoints/handlers/rest.go. */
function unrecognized(body: RequestBody, kind: string, error: Error): StatusError {
  const bytes = body.type === 'bytes' ? body.bytes : Buffer.alloc(0)
  const claimed = error instanceof ProtobufError ? claimOf(bytes) : undefined
  if (claimed) return cannotBeHandled(claimed, kind, error)
  const why = error instanceof JsonSyntaxError ? `couldn't get version/kind; json parse error: ${error.message}` : error.message
  return badRequest(`the object provided is unrecognized (must be of type ${kind}): ${why} (${summaryOf(bytes)})`)
}

/** The kind and version that a protobuf envelope names; undefined when the envelope itself cannot be read. */
function claimOf(bytes: Buffer): { kind: string; apiVersion: string } | undefined {
  try {
    return openEnvelope(bytes)
  } catch {
    return undefined
  }
}

const summaryBytes = 30

/** The beginning of a body: as text when it looks like JSON, otherwise in hexadecimal digits. */
function summaryOf(bytes: Buffer): string {
  if (bytes.length === 0) return '<empty>'
  const start = bytes.subarray(0, summaryBytes).toString(bytes[0] === 0x7b ? 'utf8' : 'hex')
  return bytes.length > summaryBytes ? `${start} ...` : start
}

/**
 * Decodes and defaults a JSON value as the expected kind. Takes ownership of the value.
 * @param decodedFields of the value that are decoded already
 */
export function decodeValue(
  request: ServerRequest,
  parsed: ParsedBody,
  expected: ExpectedKind,
  validation: FieldValidation,
  decodedFields?: ReadonlySet<string>,
): KubeObject {
  const { value } = parsed
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest(`json: cannot unmarshal ${goValue(value)} into Go value of type ${expected.kind}`)
  }
  checkKind(value as Partial<KubeObject>, expected)
  const { object, unknownFields } = decodeExpected(value, expected, { unknown: validation === 'Ignore' ? 'drop' : 'collect', decoded: decodedFields })
  reportStrict(request, object, strictProblems(unknownFields, parsed.duplicates), validation)
  return withDefaults(object, expected)
}

/** Decodes and defaults a value from an admission plugin or webhook: unknown fields are dropped silently. Takes ownership of the value. */
export function decodeMade(value: unknown, expected: ExpectedKind): KubeObject {
  return withDefaults(decodeExpected(value, expected, { unknown: 'drop' }).object, expected)
}

function withDefaults(object: Record<string, unknown>, expected: ExpectedKind): KubeObject {
  const decoded = object as unknown as KubeObject
  decoded.metadata ??= {}
  applyDefaults(object, expected.schema, maxDefaultBytes)
  expected.defaults?.(decoded)
  return decoded
}

/** Decodes without defaults. Takes ownership of the value. */
export function decodeExpected(value: unknown, expected: ExpectedKind, options: DecodeOptions): Decoded {
  return expected.structural ? decodeStructural(value, expected.schema, options) : decode(value, expected.schema, options)
}

function reportStrict(request: ServerRequest, object: Record<string, unknown>, problems: readonly string[], validation: FieldValidation): void {
  if (problems.length === 0) return
  if (validation === 'Strict') throw strictDecodingError(object, problems)
  append(request.warnings, problems)
}

/** A body may leave its kind out; another kind is refused. */
export function checkKind(value: Partial<KubeObject>, expected: ExpectedKind): void {
  const apiVersion = groupVersion(expected)
  if (value.kind === undefined || value.kind === '') value.kind = expected.kind
  if (value.apiVersion === undefined || value.apiVersion === '') value.apiVersion = apiVersion
  if (value.apiVersion !== apiVersion && !expected.otherVersions?.includes(value.apiVersion)) {
    throw badRequest(`the API version in the data (${value.apiVersion}) does not match the expected API version (${apiVersion})`)
  }
  if (value.kind !== expected.kind) {
    const why = `converting (${expected.version}.${value.kind}) to (${expected.group || 'core'}.${expected.kind}): unknown conversion`
    throw cannotBeHandled(value, expected.kind, new Error(why))
  }
}
