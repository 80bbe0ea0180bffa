/**
 * Long lists in forms that are not cached (L3): tables, metadata only, YAML, indented JSON. To write a hundred thousand rows at once would block
 * other requests for seconds, so they are written in slices, between which the event loop gets its turn.
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { toYaml } from '#api/machinery/yaml'
import { encodeMessage } from '#api/protobuf/encode'
import { partialObjectMetadataSchema, protobufListPieces, protobufMediaType } from '#api/protobuf/envelope'
import type { Schema } from '#api/schema/schema'
import type { BytesAnswer } from '../core/answer.ts'
import { inSlices } from '../core/fairLoop.ts'
import type { AnswerForm } from '../core/negotiate.ts'
import type { CachedObject } from '../core/request.ts'

/** Characters that become bytes together: one conversion per element would cost more than writing the element. */
const pieceLength = 64 * 1024
/** Shorter lists are written synchronously. */
export const longListItems = 500

/** A list-like value: its other members, and the member `name` with one element per item. */
export interface LongList<Item = CachedObject> {
  readonly head: Readonly<Record<string, unknown>> & { readonly apiVersion: string; readonly kind: string; readonly metadata: object }
  readonly name: 'items' | 'rows'
  readonly items: readonly Item[]
  element(item: Item): unknown
  /** For protobuf; absent: a list of metadata. */
  readonly schemas?: { readonly list: Schema; readonly item: Schema } | undefined
}

export async function encodeLongList<Item>(form: AnswerForm, list: LongList<Item>): Promise<BytesAnswer> {
  if (form.mediaType === protobufMediaType) return answer(protobufMediaType, await protobufPieces(list))
  if (form.mediaType === 'application/yaml') return answer('application/yaml', await yamlPieces(list))
  return answer('application/json', await (form.pretty ? indentedPieces(list) : jsonPieces(list)))
}

function answer(contentType: string, pieces: readonly Uint8Array[]): BytesAnswer {
  return { type: 'bytes', status: 200, contentType, bytes: Buffer.concat(pieces) }
}

async function elements<Item>({ items, element }: LongList<Item>, write: (value: unknown, index: number) => Uint8Array): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = []
  await inSlices(items, (item, index) => {
    pieces.push(write(element(item), index))
  })
  return pieces
}

async function jsonPieces<Item>(list: LongList<Item>): Promise<Uint8Array[]> {
  const start = Buffer.from(`${JSON.stringify(list.head).slice(0, -1)},${JSON.stringify(list.name)}:[`)
  const pieces: Uint8Array[] = [start]
  let text = ''
  await inSlices(list.items, (item, index) => {
    text += `${index > 0 ? ',' : ''}${stringifyExactly(list.element(item))}`
    if (text.length < pieceLength) return
    pieces.push(Buffer.from(text))
    text = ''
  })
  return [...pieces, Buffer.from(`${text}]}\n`)]
}

async function indentedPieces<Item>(list: LongList<Item>): Promise<Uint8Array[]> {
  const start = Buffer.from(`${JSON.stringify(list.head, undefined, 2).slice(0, -2)},\n  ${JSON.stringify(list.name)}: [\n`)
  // No string of JSON holds a line break, so every line begins a member.
  const indented = (value: unknown) => `    ${stringifyExactly(value, 2).replaceAll('\n', '\n    ')}`
  const pieces = await elements(list, (value, index) => Buffer.from(`${index > 0 ? ',\n' : ''}${indented(value)}`))
  return [start, ...pieces, Buffer.from('\n  ]\n}')]
}

/** The members in the order of their names; a slice of one element gives the same text as within the whole list. */
async function yamlPieces<Item>(list: LongList<Item>): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = []
  for (const name of [...Object.keys(list.head), list.name].sort()) {
    if (name !== list.name) pieces.push(Buffer.from(toYaml({ [name]: list.head[name] })))
    else pieces.push(Buffer.from(`${name}:\n`), ...(await elements(list, (value) => Buffer.from(toYaml([value])))))
  }
  return pieces
}

/** Tables have no protobuf form. */
async function protobufPieces<Item>(list: LongList<Item>): Promise<Uint8Array[]> {
  const { item, list: whole } = list.schemas ?? { item: partialObjectMetadataSchema(false), list: partialObjectMetadataSchema(true) }
  const pieces = await elements(list, (value) => encodeMessage(value as Record<string, unknown>, item))
  return protobufListPieces(list.head, list.head.metadata, pieces, whole)
}
