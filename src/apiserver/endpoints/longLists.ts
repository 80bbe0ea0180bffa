/**
 * Long lists in forms that are not cached (L3): tables, metadata only, YAML, indented JSON. To write a hundred thousand rows at once would block
 * other requests for seconds, so they are written in slices, between which the event loop gets its turn.
 */
import { toYaml } from '#api/machinery/yaml'
import { encodeMessage } from '#api/protobuf/encode'
import { partialObjectMetadataSchema, protobufListPieces, protobufMediaType } from '#api/protobuf/envelope'
import type { BytesAnswer } from '../core/answer.ts'
import { inSlices } from '../core/fairLoop.ts'
import type { AnswerForm } from '../core/negotiate.ts'
import type { CachedObject } from '../core/request.ts'

/** Shorter lists are written synchronously. */
export const longListItems = 500

/** A list-like value: its other members, and the member `name` with one element per item. */
export interface LongList {
  readonly head: Readonly<Record<string, unknown>> & { readonly apiVersion: string; readonly kind: string; readonly metadata: object }
  readonly name: 'items' | 'rows'
  readonly items: readonly CachedObject[]
  element(item: CachedObject): unknown
}

export async function encodeLongList(form: AnswerForm, list: LongList): Promise<BytesAnswer> {
  if (form.mediaType === protobufMediaType) return answer(protobufMediaType, await protobufPieces(list))
  if (form.mediaType === 'application/yaml') return answer('application/yaml', await yamlPieces(list))
  return answer('application/json', await (form.pretty ? indentedPieces(list) : jsonPieces(list)))
}

function answer(contentType: string, pieces: readonly Uint8Array[]): BytesAnswer {
  return { type: 'bytes', status: 200, contentType, bytes: Buffer.concat(pieces) }
}

async function elements({ items, element }: LongList, write: (value: unknown, index: number) => Uint8Array): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = []
  await inSlices(items, (item, index) => {
    pieces.push(write(element(item), index))
  })
  return pieces
}

async function jsonPieces(list: LongList): Promise<Uint8Array[]> {
  const start = Buffer.from(`${JSON.stringify(list.head).slice(0, -1)},${JSON.stringify(list.name)}:[`)
  const pieces = await elements(list, (value, index) => Buffer.from(`${index > 0 ? ',' : ''}${JSON.stringify(value)}`))
  return [start, ...pieces, Buffer.from(']}\n')]
}

async function indentedPieces(list: LongList): Promise<Uint8Array[]> {
  const start = Buffer.from(`${JSON.stringify(list.head, undefined, 2).slice(0, -2)},\n  ${JSON.stringify(list.name)}: [\n`)
  // No string of JSON holds a line break, so every line begins a member.
  const indented = (value: unknown) => `    ${JSON.stringify(value, undefined, 2).replaceAll('\n', '\n    ')}`
  const pieces = await elements(list, (value, index) => Buffer.from(`${index > 0 ? ',\n' : ''}${indented(value)}`))
  return [start, ...pieces, Buffer.from('\n  ]\n}')]
}

/** The members in the order of their names; a slice of one element gives the same text as within the whole list. */
async function yamlPieces(list: LongList): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = []
  for (const name of [...Object.keys(list.head), list.name].sort()) {
    if (name !== list.name) pieces.push(Buffer.from(toYaml({ [name]: list.head[name] })))
    else pieces.push(Buffer.from(`${name}:\n`), ...(await elements(list, (value) => Buffer.from(toYaml([value])))))
  }
  return pieces
}

/** Encodes a list of metadata: the other forms here have no protobuf. */
async function protobufPieces(list: LongList): Promise<Uint8Array[]> {
  const schema = partialObjectMetadataSchema(false)
  const pieces = await elements(list, (value) => encodeMessage(value as Record<string, unknown>, schema))
  return protobufListPieces(list.head, list.head.metadata, pieces, partialObjectMetadataSchema(true))
}
