/** JSON object → protobuf message, in one pass over the schema (L1). Absent fields are left out: Go reads them as zero. */

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { parseTime } from '#base/time'
import { parseDuration } from '../machinery/duration.ts'
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import type { JsonObject } from '../machinery/objects.ts'
import { schemaOfDefinition } from '../schema/builtIn.ts'
import type { Schema } from '../schema/schema.ts'
import { jsonSchemaProps, type Plan, planOf, unionOf } from './plan.ts'

/** The bare message, without the envelope and without apiVersion and kind. */
export function encodeMessage(object: JsonObject, schema: Schema): Uint8Array {
  const writer = new BinaryWriter()
  writeObject(writer, object, planOf(schema))
  return writer.finish()
}

function writeObject(writer: BinaryWriter, object: JsonObject, plan: Plan): void {
  for (const entry of plan.entries) {
    if ('field' in entry) {
      const value = object[entry.field.name]
      if (value !== undefined && value !== null) writeField(writer, entry.number, value, entry.field.schema)
    } else {
      writer.tag(entry.number, WireType.LengthDelimited).fork()
      writeObject(writer, object, entry.inline)
      writer.join()
    }
  }
}

function writeField(writer: BinaryWriter, number: number, value: unknown, schema: Schema): void {
  if (schema.type === 'array') {
    for (const item of value as unknown[]) writeValue(writer, number, item, schema.element ?? schema)
  } else if (schema.type === 'map') {
    const map = value as JsonObject
    for (const key of Object.keys(map).sort()) {
      writer.tag(number, WireType.LengthDelimited).fork()
      writer.tag(1, WireType.LengthDelimited).string(key)
      writeValue(writer, 2, map[key], schema.element ?? schema)
      writer.join()
    }
  } else writeValue(writer, number, value, schema)
}

function writeValue(writer: BinaryWriter, number: number, value: unknown, schema: Schema): void {
  switch (schema.type) {
    case 'string':
      writeString(writer, number, value, schema)
      break
    case 'integer':
      writer.tag(number, WireType.Varint).int64(value as number)
      break
    case 'boolean':
      writer.tag(number, WireType.Varint).bool(value === true)
      break
    case 'number':
      writer.tag(number, WireType.Bit64).double(value as number)
      break
    default:
      writer.tag(number, WireType.LengthDelimited).fork()
      writeBody(writer, value, schema)
      writer.join()
  }
}

function writeBody(writer: BinaryWriter, value: unknown, schema: Schema): void {
  if (schema.type === 'object') writeObject(writer, (value ?? {}) as JsonObject, planOf(schema))
  // A list as the value of a map: a message around a repeated field.
  else if (schema.type === 'array') writeField(writer, 1, value, schema)
  else if (schema.type === 'any') writeAny(writer, value, schema)
}

function writeString(writer: BinaryWriter, number: number, value: unknown, schema: Schema): void {
  writer.tag(number, WireType.LengthDelimited)
  switch (schema.format) {
    case 'byte':
      writer.bytes(Buffer.from(value as string, 'base64'))
      break
    case 'quantity':
      writer.fork().tag(1, WireType.LengthDelimited).string(String(value)).join()
      break
    case 'duration':
      writer
        .fork()
        .tag(1, WireType.Varint)
        .int64(Math.round((parseDuration(value as string) ?? 0) * 1e6))
        .join()
      break
    case 'date-time':
    case 'micro-time': {
      if (value === null) {
        writer.fork().join()
        break
      }
      const epochMs = parseTime(value as string) ?? 0
      const seconds = Math.floor(epochMs / 1000)
      const nanos = schema.format === 'date-time' ? 0 : Math.round((epochMs - seconds * 1000) * 1000) * 1000
      writer.fork().tag(1, WireType.Varint).int64(seconds).tag(2, WireType.Varint).int32(nanos).join()
      break
    }
    case 'int-or-string': {
      const isString = typeof value === 'string'
      writer.fork()
      writer.tag(1, WireType.Varint).int64(isString ? 1 : 0)
      writer.tag(2, WireType.Varint).int32(isString ? 0 : (value as number))
      writer
        .tag(3, WireType.LengthDelimited)
        .string(isString ? value : '')
        .join()
      break
    }
    default:
      writer.string(value as string)
  }
}

function writeAny(writer: BinaryWriter, value: unknown, schema: Schema): void {
  const json = () => writer.tag(1, WireType.LengthDelimited).string(stringifyExactly(value))
  switch (unionOf(schema)) {
    case 'orArray':
      if (Array.isArray(value)) for (const item of value) writeValue(writer, 2, item, schemaOfDefinition(jsonSchemaProps))
      else writeValue(writer, 1, value, schemaOfDefinition(jsonSchemaProps))
      break
    case 'orBool':
      writer.tag(1, WireType.Varint).bool(value !== false)
      if (typeof value === 'object') writeValue(writer, 2, value, schemaOfDefinition(jsonSchemaProps))
      break
    case 'orStringArray':
      if (Array.isArray(value)) for (const item of value) writer.tag(2, WireType.LengthDelimited).string(String(item))
      else writeValue(writer, 1, value, schemaOfDefinition(jsonSchemaProps))
      break
    default:
      // RawExtension, FieldsV1 and JSON hold their JSON text.
      json()
  }
}
