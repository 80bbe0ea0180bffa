/**
 * Answers as bytes (L3). Lists are the concatenation of their items' cached bytes: nothing is serialised again.
 */
import { type Frozen, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { encodeProtobuf, partialObjectMetadataSchema, protobufMediaType } from '#api/machinery/protobuf/envelope'
import { toYaml } from '#api/machinery/yaml'
import { schemaFor, schemaOfDefinition } from '#api/schema/builtIn'
import type { BytesAnswer, Encoding, ListAnswer, ObjectAnswer, ValueAnswer } from '../answer.ts'
import type { CachedObject } from '../request.ts'

export interface Encoded {
  readonly contentType: string
  readonly bytes: Uint8Array
}

const comma = Buffer.from(',')
const openBrace = Buffer.from('{')
const listTail = Buffer.from(']}\n')

export function encodeAnswer(answer: ObjectAnswer | ListAnswer | ValueAnswer | BytesAnswer): Encoded {
  if (answer.type === 'bytes') return answer
  if (answer.type === 'object') {
    return answer.encoding ? encodeValue(answer.object.object, answer.encoding) : { contentType: 'application/json', bytes: answer.object.bytes }
  }
  if (answer.type === 'value') return encodeValue(answer.value, answer.encoding)
  return answer.encoding ? encodeValue(wireList(answer), answer.encoding) : { contentType: 'application/json', bytes: listBytes(answer) }
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
  const head = `${JSON.stringify({ kind, apiVersion, metadata }).slice(0, -1)},"items":[`
  const itemHead = Buffer.from(`${JSON.stringify({ apiVersion, kind: kind.slice(0, -'List'.length) }).slice(0, -1)},`)
  const parts: Uint8Array[] = [Buffer.from(head)]
  for (const [at, item] of items.entries()) {
    if (at > 0) parts.push(comma)
    if (answer.typedItems) parts.push(item.bytes)
    else pushItem(parts, item, itemHead)
  }
  parts.push(listTail)
  return Buffer.concat(parts)
}

/** The list's kind tells its items' kind: on the wire they do not repeat it. Canonical bytes begin with what is left out. */
function pushItem(parts: Uint8Array[], item: CachedObject, itemHead: Buffer): void {
  const { bytes } = item
  if (bytes.length > itemHead.length && itemHead.compare(bytes, 0, itemHead.length) === 0) parts.push(openBrace, bytes.subarray(itemHead.length))
  else parts.push(Buffer.from(JSON.stringify(withoutType(item.object))))
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
  const { group, version } = parseGroupVersion(object.apiVersion)
  if (object.kind === 'PartialObjectMetadata' || object.kind === 'PartialObjectMetadataList')
    return encodeProtobuf(object, partialObjectMetadataSchema(object.kind.endsWith('List')))
  const schema = schemaFor(group, version, object.kind) ?? schemaOfDefinition(`io.k8s.apimachinery.pkg.apis.meta.v1.${object.kind}`)
  return encodeProtobuf(object, schema)
}
