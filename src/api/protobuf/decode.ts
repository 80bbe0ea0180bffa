/**
 * Protobuf message → JSON object, in one pass over the schema (L1). Zero values that Go writes for absent fields are dropped again, so the
 * object is what the same client would have sent as JSON. Unknown field numbers are skipped, as Go does.
 */

import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { messageOf } from '#base/messageOf'
import { formatMicroTime, formatTime } from '#base/time'
import { formatDuration } from '../machinery/duration.ts'
import { parseExactly } from '../machinery/json.ts'
import { type JsonObject, setOwn } from '../machinery/objects.ts'
import { schemaOfDefinition } from '../schema/builtIn.ts'
import type { Field, Schema } from '../schema/schema.ts'
import { jsonSchemaProps, type Plan, planOf, unionOf } from './plan.ts'

/** The input is no message of this kind. */
export class ProtobufError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ProtobufError'
  }
}

const maxDepth = 500

/**
 * Decodes a bare message. The caller adds apiVersion and kind.
 * @throws ProtobufError
 */
export function decodeMessage(bytes: Uint8Array, schema: Schema): JsonObject {
  try {
    return readObject(new BinaryReader(bytes), bytes.length, planOf(schema), {}, 0)
  } catch (error) {
    if (error instanceof ProtobufError) throw error
    throw new ProtobufError(`proto: ${messageOf(error)}`, error)
  }
}

function readObject(reader: BinaryReader, end: number, plan: Plan, object: JsonObject, depth: number): JsonObject {
  if (depth > maxDepth) throw new ProtobufError('proto: nested too deep')
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    const entry = plan.byNumber.get(number)
    if (entry === undefined) reader.skip(wire, number)
    else if ('inline' in entry) readObject(reader, endOf(reader), entry.inline, object, depth + 1)
    else readField(reader, wire, entry.field, object, depth)
  }
  return object
}

/** Reads a length and says where that stretch ends. */
function endOf(reader: BinaryReader): number {
  const length = reader.uint32()
  const end = reader.pos + length
  if (end > reader.len) throw new ProtobufError('proto: unexpected EOF')
  return end
}

function readField(reader: BinaryReader, wire: WireType, field: Field, object: JsonObject, depth: number): void {
  const { name, schema } = field
  if (schema.type === 'array') {
    const list = (object[name] ?? []) as unknown[]
    object[name] = list
    const element = schema.element ?? schema
    if (wire === WireType.LengthDelimited && (element.type === 'integer' || element.type === 'boolean')) {
      for (const end = endOf(reader); reader.pos < end; ) list.push(readValue(reader, element, depth, name))
    } else list.push(readValue(reader, element, depth, name) ?? zeroItem(element))
  } else if (schema.type === 'map') {
    const map = (object[name] ?? {}) as JsonObject
    object[name] = map
    readEntry(reader, map, schema.element ?? schema, depth)
  } else {
    const value = readValue(reader, schema, depth, name)
    if (value !== undefined && !isDropped(value, field)) object[name] = value
  }
}

/** Go writes zero values of plain fields; JSON leaves them out unless the field is a pointer or never omitted. */
function isDropped(value: unknown, { schema, pointer, alwaysPresent }: Field): boolean {
  if (pointer) return false
  if (schema.format === 'int-or-string') return value === 0 || value === ''
  if (alwaysPresent) return false
  return value === '' || value === 0 || value === false
}

function zeroItem(schema: Schema): unknown {
  if (schema.format === 'date-time' || schema.format === 'micro-time') return null
  return schema.type === 'object' ? {} : schema.type === 'string' ? '' : null
}

function readEntry(reader: BinaryReader, map: JsonObject, element: Schema, depth: number): void {
  const end = endOf(reader)
  let key = ''
  let value: unknown
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    if (number === 1) key = reader.string()
    else if (number === 2) value = element.type === 'array' ? readWrapped(reader, element, depth) : readValue(reader, element, depth)
    else reader.skip(wire, number)
  }
  setOwn(map, key, value ?? zeroItem(element))
}

/** A list inside a map: a message around a repeated field. */
function readWrapped(reader: BinaryReader, schema: Schema, depth: number): unknown[] {
  const end = endOf(reader)
  const list: unknown[] = []
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    if (number === 1) list.push(readValue(reader, schema.element ?? schema, depth + 1))
    else reader.skip(wire, number)
  }
  return list
}

/** @param name of the field that holds the value, for errors */
function readValue(reader: BinaryReader, schema: Schema, depth: number, name = ''): unknown {
  switch (schema.type) {
    case 'string':
      return readString(reader, schema)
    case 'integer': {
      const exact = reader.int64()
      const value = Number(exact)
      if (!Number.isSafeInteger(value)) throw new ProtobufError(`the integer ${exact} of field ${name} is out of range`)
      return value
    }
    case 'boolean':
      return reader.bool()
    case 'number':
      return reader.double()
    case 'object':
      return readObject(reader, endOf(reader), planOf(schema), {}, depth + 1)
    case 'any':
      return readAny(reader, schema, depth)
    default:
      return undefined
  }
}

function readString(reader: BinaryReader, schema: Schema): unknown {
  switch (schema.format) {
    case 'byte':
      return Buffer.from(reader.bytes()).toString('base64')
    case 'quantity':
      return readMembers(reader).get(1) ?? '0'
    case 'duration':
      return formatDuration(Number(readMembers(reader).get(1) ?? 0) / 1e6)
    case 'date-time':
    case 'micro-time': {
      const members = readMembers(reader)
      // An empty message is Go's zero time: null in JSON.
      if (members.size === 0) return undefined
      const seconds = Number(members.get(1) ?? 0)
      const nanos = Number(members.get(2) ?? 0)
      return schema.format === 'date-time' ? formatTime(seconds * 1000) : formatMicroTime(seconds * 1000 + Math.floor(nanos / 1000) / 1000)
    }
    case 'int-or-string': {
      const members = readMembers(reader)
      return Number(members.get(1) ?? 0) === 1 ? (members.get(3) ?? '') : Number(members.get(2) ?? 0)
    }
    default:
      return reader.string()
  }
}

/** A small message of numbers and strings. */
function readMembers(reader: BinaryReader): Map<number, string | number> {
  const end = endOf(reader)
  const members = new Map<number, string | number>()
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    if (wire === WireType.Varint) members.set(number, Number(reader.int64()))
    else if (wire === WireType.LengthDelimited) members.set(number, reader.string())
    else reader.skip(wire, number)
  }
  return members
}

function readAny(reader: BinaryReader, schema: Schema, depth: number): unknown {
  const union = unionOf(schema)
  const end = endOf(reader)
  const props = union === undefined || union === 'json' ? undefined : schemaOfDefinition(jsonSchemaProps)
  let value: unknown
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    if (props === undefined) {
      if (number === 1) value = parseText(reader.bytes())
      else reader.skip(wire, number)
    } else if (union === 'orBool') {
      if (number === 1) value = reader.bool()
      else value = readValue(reader, props, depth + 1)
    } else if (number === 1) value = readValue(reader, props, depth + 1)
    else value = [...((value ?? []) as unknown[]), union === 'orArray' ? readValue(reader, props, depth + 1) : reader.string()]
  }
  return value
}

function parseText(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined
  try {
    return parseExactly(bytes)
  } catch (error) {
    throw new ProtobufError('raw extension does not hold JSON', error)
  }
}
