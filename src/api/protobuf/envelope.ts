/**
 * Objects in Kubernetes' protobuf form (L1): the magic `k8s\0` and a runtime.Unknown that names the kind, and the frames of a watch.
 * Upstream: apimachinery/pkg/runtime/serializer/protobuf (v1.36).
 */

import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { messageOf } from '#base/messageOf'
import { parseExactly } from '../machinery/json.ts'
import type { JsonObject } from '../machinery/objects.ts'
import { schemaOfDefinition } from '../schema/builtIn.ts'
import type { Schema } from '../schema/schema.ts'
import { decodeMessage, ProtobufError } from './decode.ts'
import { encodeMessage } from './encode.ts'

export const protobufMediaType = 'application/vnd.kubernetes.protobuf'
const magic = [0x6b, 0x38, 0x73, 0x00] as const

export interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  readonly raw: Uint8Array
  /** '' for protobuf; 'application/json' when raw holds JSON. */
  readonly contentType: string
}

/** True for bytes that begin with the magic: values written by upstream, bodies of Go clients. */
export function isProtobuf(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && magic.every((byte, index) => bytes[index] === byte)
}

/** @throws ProtobufError when the bytes are no envelope. */
export function openEnvelope(bytes: Uint8Array): Envelope {
  if (!isProtobuf(bytes)) throw new ProtobufError('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]')
  if (bytes.length === magic.length) throw new ProtobufError('empty body')
  const envelope = { apiVersion: '', kind: '', raw: new Uint8Array(), contentType: '' }
  try {
    const reader = new BinaryReader(bytes.subarray(4))
    while (reader.pos < reader.len) {
      const [number, wire] = reader.tag()
      if (number === 1) Object.assign(envelope, typeMeta(reader.bytes()))
      else if (number === 2) envelope.raw = new Uint8Array(reader.bytes())
      else if (number === 4) envelope.contentType = reader.string()
      else reader.skip(wire, number)
    }
  } catch (error) {
    throw new ProtobufError(`proto: ${messageOf(error)}`, error)
  }
  return envelope
}

/** The apiVersion that an envelope names, without reading its content; undefined when the bytes are no envelope. */
export function apiVersionOf(bytes: Uint8Array): string | undefined {
  try {
    const reader = new BinaryReader(bytes.subarray(4))
    const [number] = reader.tag()
    return number === 1 ? typeMeta(reader.bytes()).apiVersion : undefined
  } catch {
    return undefined
  }
}

function typeMeta(bytes: Uint8Array): { apiVersion: string; kind: string } {
  const reader = new BinaryReader(bytes)
  const meta = { apiVersion: '', kind: '' }
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag()
    if (number === 1) meta.apiVersion = reader.string()
    else if (number === 2) meta.kind = reader.string()
    else reader.skip(wire, number)
  }
  return meta
}

/**
 * An object from its protobuf form, as plain JSON: it still goes through schema/decode.ts.
 * @param schemaOf finds the schema of the kind that the envelope names; undefined refuses it.
 * @throws ProtobufError
 */
export function decodeProtobuf(bytes: Uint8Array, schemaOf: (apiVersion: string, kind: string) => Schema | undefined): JsonObject {
  const { apiVersion, kind, raw, contentType } = openEnvelope(bytes)
  if (contentType === 'application/json') return parseExactly(raw) as JsonObject
  const schema = schemaOf(apiVersion, kind)
  if (schema === undefined) throw new ProtobufError(`no kind "${kind}" is registered for version "${apiVersion}" in the protobuf scheme`)
  return { kind, apiVersion, ...decodeMessage(raw, schema) }
}

/** What an envelope says of its content. */
interface Named {
  readonly apiVersion: string
  readonly kind: string
}

/** An object in its protobuf form. `object` must be of the schema's kind. */
export function encodeProtobuf(object: Named, schema: Schema): Uint8Array {
  return inEnvelope(object, [encodeMessage(object as unknown as JsonObject, schema)])
}

/** The same from the bare message of encodeMessage. */
export function encodeProtobufMessage(named: Named, message: Uint8Array): Uint8Array {
  return inEnvelope(named, [message])
}

/**
 * A list from the bare messages of its items, as the pieces that in a row are its form. `named` and `metadata` are the list's, `schema` its kind's.
 */
export function protobufListPieces(named: Named, metadata: object, items: readonly Uint8Array[], schema: Schema): Uint8Array[] {
  const number = schema.fields?.get('items')?.protobuf?.number
  if (number === undefined) throw new Error(`${named.kind} is no list`)
  const parts: Uint8Array[] = [encodeMessage({ metadata }, schema)]
  const headers = lengthHeaders(number, items)
  for (const [index, item] of items.entries()) parts.push(headers[index]!, item)
  return envelopePieces(named, parts)
}

function inEnvelope(named: Named, parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(envelopePieces(named, parts))
}

/** The parts in a row are the message. */
function envelopePieces({ apiVersion, kind }: Named, parts: readonly Uint8Array[]): Uint8Array[] {
  let length = 0
  for (const part of parts) length += part.length
  const writer = new BinaryWriter()
  writer.raw(Uint8Array.from(magic))
  writer.tag(1, WireType.LengthDelimited).fork()
  writer.tag(1, WireType.LengthDelimited).string(apiVersion)
  writer.tag(2, WireType.LengthDelimited).string(kind)
  writer.join()
  writer.tag(2, WireType.LengthDelimited).uint32(length)
  return [writer.finish(), ...parts, envelopeEnd]
}

/** Content encoding and content type: both empty. */
const envelopeEnd = new BinaryWriter().tag(3, WireType.LengthDelimited).string('').tag(4, WireType.LengthDelimited).string('').finish()

/** A tag of one byte and a length of five at most. */
const headerBytes = 6

/** What stands before each of a repeated field's messages. All lie in one array: a list has thousands. @param number at most 15 */
function lengthHeaders(number: number, items: readonly Uint8Array[]): Uint8Array[] {
  const all = new Uint8Array(items.length * headerBytes)
  return items.map(({ length }, index) => {
    const start = index * headerBytes
    let at = start
    all[at++] = (number << 3) | WireType.LengthDelimited
    let rest = length
    for (; rest > 0x7f; rest >>>= 7) all[at++] = (rest & 0x7f) | 0x80
    all[at++] = rest
    return all.subarray(start, at)
  })
}

/** One event of a watch in `application/vnd.kubernetes.protobuf;stream=watch`: a length of four bytes and a bare WatchEvent. */
export function encodeWatchFrame(type: string, object: Uint8Array): Uint8Array {
  const writer = new BinaryWriter()
  writer.tag(1, WireType.LengthDelimited).string(type)
  writer.tag(2, WireType.LengthDelimited).fork()
  writer.tag(1, WireType.LengthDelimited).bytes(object)
  writer.join()
  const event = writer.finish()
  const frame = new Uint8Array(4 + event.length)
  new DataView(frame.buffer).setUint32(0, event.length)
  frame.set(event, 4)
  return frame
}

/** meta.k8s.io/v1 PartialObjectMetadata, or its list: kinds of any resource that clients ask for by `as=`; no part of the OpenAPI. */
export function partialObjectMetadataSchema(list: boolean): Schema {
  const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
  const metadata = schemaOfDefinition(`${meta}.${list ? 'ListMeta' : 'ObjectMeta'}`)
  const fields = new Map([['metadata', { name: 'metadata', schema: metadata, required: false, alwaysPresent: true, protobuf: { number: 1, type: '@' } }]])
  if (list) {
    const items: Schema = { type: 'array', element: partialObjectMetadataSchema(false) }
    fields.set('items', { name: 'items', schema: items, required: true, alwaysPresent: true, protobuf: { number: 2, type: '[@' } })
  }
  return { type: 'object', fields }
}
