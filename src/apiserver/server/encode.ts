/**
 * Answers as bytes (L3). Lists are the concatenation of their items' cached bytes: nothing is serialised again.
 */
import { type Frozen, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { encodeMessage } from '#api/machinery/protobuf/encode'
import { encodeProtobuf, encodeProtobufList, encodeProtobufMessage, partialObjectMetadataSchema, protobufMediaType } from '#api/machinery/protobuf/envelope'
import { toYaml } from '#api/machinery/yaml'
import { schemaFor, schemaOfDefinition } from '#api/schema/builtIn'
import type { Schema } from '#api/schema/schema'
import type { BytesAnswer, Encoding, ListAnswer, ObjectAnswer, ValueAnswer } from '../answer.ts'
import type { CachedObject } from '../request.ts'

export interface Encoded {
  readonly contentType: string
  readonly bytes: Uint8Array
}

const comma = 0x2c
const openBrace = 0x7b
const listTail = Buffer.from(']}\n')

export function encodeAnswer(answer: ObjectAnswer | ListAnswer | ValueAnswer | BytesAnswer): Encoded {
  if (answer.type === 'bytes') return answer
  if (answer.type === 'value') return encodeValue(answer.value, answer.encoding)
  if (answer.type === 'object') {
    const { object, encoding } = answer
    if (encoding === 'protobuf') return { contentType: protobufMediaType, bytes: encodeProtobufMessage(object.object, messageOf(object)) }
    return encoding ? encodeValue(object.object, encoding) : { contentType: 'application/json', bytes: object.bytes }
  }
  if (answer.encoding === 'protobuf') return { contentType: protobufMediaType, bytes: listProtobuf(answer) }
  return answer.encoding ? encodeValue(wireList(answer), answer.encoding) : { contentType: 'application/json', bytes: listBytes(answer) }
}

/** Made once, like the JSON bytes. */
function messageOf(cached: CachedObject): Uint8Array {
  cached.protobuf ??= encodeMessage(cached.object as unknown as Record<string, unknown>, schemaOfObject(cached.object))
  return cached.protobuf
}

function listProtobuf(answer: ListAnswer): Uint8Array {
  return encodeProtobufList(answer, answer.metadata, answer.items.map(messageOf), schemaOfObject(answer))
}

/** The list as a value, for callers in this process: its items are the cache's own, with their types. */
export function listValue(answer: ListAnswer): unknown {
  const { apiVersion, kind, metadata } = answer
  return { kind, apiVersion, metadata, items: answer.items.map((item) => item.object) }
}

function encodeValue(value: unknown, encoding?: Encoding): Encoded {
  if (encoding === 'yaml') return { contentType: 'application/yaml', bytes: Buffer.from(toYaml(value)) }
  if (encoding === 'protobuf') return { contentType: protobufMediaType, bytes: protobufOf(value) }
  const text = encoding === 'pretty' ? `${JSON.stringify(value, undefined, 2)}` : `${JSON.stringify(value)}\n`
  return { contentType: 'application/json', bytes: Buffer.from(text) }
}

function listBytes(answer: ListAnswer): Buffer {
  const { apiVersion, kind, metadata, items } = answer
  const head = Buffer.from(`${JSON.stringify({ kind, apiVersion, metadata }).slice(0, -1)},"items":[`)
  const itemHead = Buffer.from(`${JSON.stringify({ apiVersion, kind: kind.slice(0, -'List'.length) }).slice(0, -1)},`)
  const bodies = items.map((item) => (answer.typedItems ? { bytes: item.bytes, from: 0 } : itemBody(item, itemHead)))
  let length = head.length + listTail.length + Math.max(items.length - 1, 0)
  for (const { bytes, from } of bodies) length += bytes.length - from + (from > 0 ? 1 : 0)
  const out = Buffer.allocUnsafe(length)
  let at = head.copy(out)
  for (const [index, { bytes, from }] of bodies.entries()) {
    if (index > 0) out[at++] = comma
    if (from > 0) out[at++] = openBrace
    at += Buffer.prototype.copy.call(bytes, out, at, from)
  }
  listTail.copy(out, at)
  return out
}

/** The list's kind tells its items' kind: on the wire they do not repeat it. Canonical bytes begin with what is left out, up to `from`. */
function itemBody(item: CachedObject, itemHead: Buffer): { readonly bytes: Uint8Array; readonly from: number } {
  const { bytes } = item
  const isCanonical = bytes.length > itemHead.length && itemHead.compare(bytes, 0, itemHead.length) === 0
  return isCanonical ? { bytes, from: itemHead.length } : { bytes: Buffer.from(JSON.stringify(withoutType(item.object))), from: 0 }
}

function withoutType({ apiVersion: _, kind: __, ...rest }: Frozen<KubeObject>): object {
  return rest
}

function wireList(answer: ListAnswer): unknown {
  const { apiVersion, kind, metadata } = answer
  return { kind, apiVersion, metadata, items: answer.items.map((item) => (answer.typedItems ? item.object : withoutType(item.object))) }
}

/** Kinds that the schema does not know (tables) have no protobuf form and are not negotiated. */
export function protobufOf(value: unknown): Uint8Array {
  const object = value as { apiVersion: string; kind: string }
  if (object.kind === 'PartialObjectMetadata' || object.kind === 'PartialObjectMetadataList')
    return encodeProtobuf(object, partialObjectMetadataSchema(object.kind.endsWith('List')))
  return encodeProtobuf(object, schemaOfObject(object))
}

function schemaOfObject({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): Schema {
  const { group, version } = parseGroupVersion(apiVersion)
  return schemaFor(group, version, kind) ?? schemaOfDefinition(`io.k8s.apimachinery.pkg.apis.meta.v1.${kind}`)
}
