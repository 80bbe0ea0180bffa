/**
 * Answers as bytes (L3). Lists are the concatenation of their items' cached bytes: nothing is serialised again.
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { type Frozen, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { toYaml } from '#api/machinery/yaml'
import { encodeMessage } from '#api/protobuf/encode'
import { encodeProtobuf, encodeProtobufMessage, partialObjectMetadataSchema, protobufListPieces, protobufMediaType } from '#api/protobuf/envelope'
import { schemaFor, schemaOfDefinition } from '#api/schema/builtIn'
import { withNils } from '#api/schema/nils'
import type { Schema } from '#api/schema/schema'
import type { BytesAnswer, Encoding, ListAnswer, ObjectAnswer, ValueAnswer } from './answer.ts'
import type { Pieces } from './pieces.ts'
import type { CachedObject } from './request.ts'

export interface Encoded {
  readonly contentType: string
  readonly bytes: Uint8Array
}

export interface EncodedList {
  readonly contentType: string
  readonly pieces: Pieces
}

const openBrace = Buffer.from('{')
const nextBrace = Buffer.from(',{')
const comma = Buffer.from(',')
const listTail = Buffer.from(']}\n')

/** Encodes any answer but a list, see {@link encodeList}. */
export function encodeAnswer(answer: ObjectAnswer | ValueAnswer | BytesAnswer): Encoded {
  if (answer.type === 'bytes') return answer
  if (answer.type === 'value') return encodeValue(answer.value, answer.encoding, answer.schema)
  const { object, encoding } = answer
  if (encoding === 'protobuf') return { contentType: protobufMediaType, bytes: encodeProtobufMessage(object.object, messageOf(object)) }
  return encoding ? encodeValue(withNils(object.object), encoding) : { contentType: 'application/json', bytes: object.bytes }
}

/** Concatenates the items' cached bytes. The first list of many objects makes those bytes, and yields to the event loop meanwhile. */
export async function encodeList(answer: ListAnswer): Promise<EncodedList> {
  const { items, encoding } = answer
  if (encoding === 'protobuf') {
    await encodeMessages(items)
    const pieces = protobufListPieces(answer, answer.metadata, items.map(messageOf), schemaOfObject(answer))
    return { contentType: protobufMediaType, pieces }
  }
  if (!encoding) {
    const head = itemHeadOf(answer)
    await prepareJson(answer, head)
    return { contentType: 'application/json', pieces: listPieces(answer, head) }
  }
  const { contentType, bytes } = encodeValue(wireList(answer), encoding)
  return { contentType, pieces: [bytes] }
}

/** Messages made before the event loop gets its turn. */
const slice = 200
/** Items whose JSON is made before the event loop gets its turn. An item whose JSON may exist already counts, too. */
const jsonSlice = 500

/** Makes the JSON bytes of each item, so that concatenating them afterwards is cheap. */
async function prepareJson({ items, typedItems }: ListAnswer, itemHead: Buffer): Promise<void> {
  let made = 0
  for (const item of items) {
    if (item.untypedTail && !typedItems) continue
    if (typedItems) void item.bytes
    else findTail(item, itemHead)
    if (++made % jsonSlice === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

async function encodeMessages(items: readonly CachedObject[]): Promise<void> {
  let made = 0
  for (const item of items) {
    if (item.protobuf) continue
    messageOf(item)
    if (++made % slice === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The protobuf message, made once like the JSON bytes. */
function messageOf(cached: CachedObject): Uint8Array {
  cached.protobuf ??= encodeMessage(cached.object as unknown as Record<string, unknown>, schemaOfObject(cached.object))
  return cached.protobuf
}

/** The list as a value, for callers in this process: its items are the cache's own, with their types. */
export function listValue(answer: ListAnswer): unknown {
  const { apiVersion, kind, metadata } = answer
  return { kind, apiVersion, metadata, items: answer.items.map((item) => item.object) }
}

function encodeValue(value: unknown, encoding?: Encoding, schema?: Schema): Encoded {
  if (encoding === 'yaml') return { contentType: 'application/yaml', bytes: Buffer.from(toYaml(value)) }
  if (encoding === 'protobuf') return { contentType: protobufMediaType, bytes: protobufOf(value, schema) }
  const text = encoding === 'pretty' ? stringifyExactly(value, 2) : `${stringifyExactly(value)}\n`
  return { contentType: 'application/json', bytes: Buffer.from(text) }
}

/** On the wire, items do not repeat the kind that the list implies; canonical bytes begin with it, so it is cut off. */
function listPieces(answer: ListAnswer, itemHead: Buffer): Pieces {
  const { apiVersion, kind, metadata, items, typedItems } = answer
  const pieces: Uint8Array[] = [Buffer.from(`${JSON.stringify({ kind, apiVersion, metadata }).slice(0, -1)},"items":[`)]
  for (const [index, item] of items.entries()) {
    const tail = typedItems ? undefined : (item.untypedTail ?? findTail(item, itemHead))
    if (tail) {
      pieces.push(index > 0 ? nextBrace : openBrace, tail)
      continue
    }
    if (index > 0) pieces.push(comma)
    pieces.push(typedItems ? item.bytes : Buffer.from(stringifyExactly(withoutType(withNils(item.object)))))
  }
  pieces.push(listTail)
  return pieces
}

function itemHeadOf({ apiVersion, kind }: ListAnswer): Buffer {
  return Buffer.from(`${JSON.stringify({ apiVersion, kind: kind.slice(0, -'List'.length) }).slice(0, -1)},`)
}

/** Undefined when the bytes do not begin with the type: another writer stored them in another order. */
function findTail(item: CachedObject, itemHead: Buffer): Uint8Array | undefined {
  const { bytes } = item
  if (bytes.length > itemHead.length && itemHead.compare(bytes, 0, itemHead.length) === 0) item.untypedTail = bytes.subarray(itemHead.length)
  return item.untypedTail
}

function withoutType({ apiVersion: _, kind: __, ...rest }: Frozen<KubeObject>): object {
  return rest
}

function wireList(answer: ListAnswer): unknown {
  const { apiVersion, kind, metadata } = answer
  return { kind, apiVersion, metadata, items: answer.items.map((item) => (answer.typedItems ? item.object : withoutType(withNils(item.object)))) }
}

/** Kinds that the schema does not know (tables) have no protobuf form and are not negotiated. */
export function protobufOf(value: unknown, schema?: Schema): Uint8Array {
  const object = value as { apiVersion: string; kind: string }
  if (object.kind === 'PartialObjectMetadata' || object.kind === 'PartialObjectMetadataList')
    return encodeProtobuf(object, partialObjectMetadataSchema(object.kind.endsWith('List')))
  return encodeProtobuf(object, schema ?? schemaOfObject(object))
}

function schemaOfObject({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): Schema {
  const { group, version } = parseGroupVersion(apiVersion)
  return schemaFor(group, version, kind) ?? schemaOfDefinition(`io.k8s.apimachinery.pkg.apis.meta.v1.${kind}`)
}
