/**
 * The OpenAPI v2 document as protobuf (L1): what older kubectl reads for `explain` and for validation.
 * One table of messages and one walk. Upstream: google/gnostic-models openapiv2 (OpenAPIv2.proto), as used by kube-openapi.
 */

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { bareMap } from '#base/bareMap'
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import type { DocumentEntry, EntryMember } from './document.ts'
import type { JsonSchema } from './schemas.ts'

/** The media type of the answer. */
export const gnosticMediaType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

/** What clients ask for: the second is how all but the newest spell it, and no valid media type, so it never answers. */
export const gnosticAcceptedTypes: readonly string[] = [gnosticMediaType, 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf']

/**
 * How a member travels: a scalar; a message by name; `[]X` repeated; `{}X` a map as a list of named values; `any` as YAML text;
 * `only:X` a message whose one member has number 1 (oneof wrappers and lists).
 */
type Kind = string

interface Message {
  readonly members: Readonly<Record<string, readonly [number: number, kind: Kind]>>
  /** Where members starting with x- go. */
  readonly extensions?: number
}

const operation = 'Operation'
const messages: Readonly<Record<string, Message>> = bareMap({
  Document: {
    members: {
      swagger: [1, 'string'],
      info: [2, 'Info'],
      paths: [8, 'Paths'],
      definitions: [9, '{}Schema'],
      parameters: [10, '{}Parameter'],
      security: [12, '[]SecurityRequirement'],
      securityDefinitions: [13, '{}SecurityDefinition'],
    },
    extensions: 16,
  },
  Info: { members: { title: [1, 'string'], version: [2, 'string'], description: [3, 'string'] } },
  PathItem: {
    members: {
      get: [2, operation],
      put: [3, operation],
      post: [4, operation],
      delete: [5, operation],
      options: [6, operation],
      head: [7, operation],
      patch: [8, operation],
      parameters: [9, '[]ParametersItem'],
    },
    extensions: 10,
  },
  Operation: {
    members: {
      tags: [1, '[]string'],
      description: [3, 'string'],
      operationId: [5, 'string'],
      produces: [6, '[]string'],
      consumes: [7, '[]string'],
      parameters: [8, '[]ParametersItem'],
      responses: [9, '{}ResponseValue'],
      schemes: [10, '[]string'],
    },
    extensions: 13,
  },
  JsonReference: { members: { $ref: [1, 'string'] } },
  BodyParameter: {
    members: { description: [1, 'string'], name: [2, 'string'], in: [3, 'string'], required: [4, 'bool'], schema: [5, 'Schema'] },
    extensions: 6,
  },
  QueryParameter: {
    members: {
      required: [1, 'bool'],
      in: [2, 'string'],
      description: [3, 'string'],
      name: [4, 'string'],
      type: [6, 'string'],
      format: [7, 'string'],
      uniqueItems: [20, 'bool'],
    },
    extensions: 23,
  },
  PathParameter: {
    members: {
      required: [1, 'bool'],
      in: [2, 'string'],
      description: [3, 'string'],
      name: [4, 'string'],
      type: [5, 'string'],
      format: [6, 'string'],
      uniqueItems: [19, 'bool'],
    },
    extensions: 22,
  },
  Response: { members: { description: [1, 'string'], schema: [2, 'only:Schema'] }, extensions: 5 },
  ApiKeySecurity: { members: { type: [1, 'string'], name: [2, 'string'], in: [3, 'string'], description: [4, 'string'] }, extensions: 5 },
  Schema: {
    members: {
      $ref: [1, 'string'],
      format: [2, 'string'],
      title: [3, 'string'],
      description: [4, 'string'],
      default: [5, 'any'],
      maximum: [7, 'double'],
      minimum: [9, 'double'],
      maxLength: [11, 'int64'],
      minLength: [12, 'int64'],
      pattern: [13, 'string'],
      maxItems: [14, 'int64'],
      minItems: [15, 'int64'],
      uniqueItems: [16, 'bool'],
      maxProperties: [17, 'int64'],
      minProperties: [18, 'int64'],
      required: [19, '[]string'],
      enum: [20, '[]any'],
      additionalProperties: [21, 'only:Schema'],
      type: [22, 'only:string'],
      items: [23, 'only:Schema'],
      allOf: [24, '[]Schema'],
      properties: [25, '{}Schema'],
    },
    extensions: 31,
  },
})

/** Encodes a document that {@link openApiV2} built. Members that the format does not know are left out. */
export function encodeGnostic(document: JsonSchema): Uint8Array {
  const writer = new BinaryWriter()
  writeMembers(writer, document, 'Document')
  return writer.finish()
}

const entryFields = { paths: [8, 2, 'PathItem'], definitions: [9, 1, 'Schema'], parameters: [10, 1, 'Parameter'] } as const

/** One entry of a document, for {@link gnosticMember}. */
export function gnosticEntry({ member, name, value }: DocumentEntry): Uint8Array {
  const [, number, kind] = entryFields[member]
  const writer = new BinaryWriter()
  writeNamed(writer, number, kind, { [name]: value })
  return writer.finish()
}

/** A member of a document, of the bytes of its entries. */
export function gnosticMember(member: EntryMember, entries: readonly Uint8Array[]): Uint8Array[] {
  const size = entries.reduce((sum, { length }) => sum + length, 0)
  return [new BinaryWriter().tag(entryFields[member][0], WireType.LengthDelimited).uint32(size).finish(), ...entries]
}

function writeMembers(writer: BinaryWriter, value: JsonSchema, name: string): void {
  const message = messages[name]
  if (!message) throw new Error(`no message ${name}`)
  for (const key of Object.keys(value)) {
    const member = message.members[key]
    if (member) writeMember(writer, member[0], member[1], value[key])
    else if (message.extensions !== undefined && key.startsWith('x-')) {
      nested(writer, message.extensions, () => {
        writer.tag(1, WireType.LengthDelimited).string(key)
        writeMember(writer, 2, 'any', value[key])
      })
    }
  }
}

function nested(writer: BinaryWriter, number: number, write: () => void): void {
  writer.tag(number, WireType.LengthDelimited).fork()
  write()
  writer.join()
}

function writeMember(writer: BinaryWriter, number: number, kind: Kind, value: unknown): void {
  if (value === undefined) return
  if (kind.startsWith('[]')) {
    for (const item of value as unknown[]) writeMember(writer, number, kind.slice(2), item)
  } else if (kind.startsWith('{}')) {
    nested(writer, number, () => writeNamed(writer, 1, kind.slice(2), value as JsonSchema))
  } else if (kind.startsWith('only:')) {
    nested(writer, number, () => writeMember(writer, 1, kind.slice('only:'.length), value))
  } else writeSingle(writer, number, kind, value)
}

/** A map: a repeated { name = 1, value = 2 }. */
function writeNamed(writer: BinaryWriter, number: number, kind: Kind, map: JsonSchema): void {
  for (const key of Object.keys(map)) {
    nested(writer, number, () => {
      writer.tag(1, WireType.LengthDelimited).string(key)
      writeMember(writer, 2, kind, map[key])
    })
  }
}

function writeSingle(writer: BinaryWriter, number: number, kind: Kind, value: unknown): void {
  switch (kind) {
    case 'string':
      writer.tag(number, WireType.LengthDelimited).string(String(value))
      break
    case 'bool':
      writer.tag(number, WireType.Varint).bool(value === true)
      break
    case 'int64':
      writer.tag(number, WireType.Varint).int64(value as number)
      break
    case 'double':
      writer.tag(number, WireType.Bit64).double(value as number)
      break
    case 'any':
      // JSON is YAML.
      nested(writer, number, () => writer.tag(2, WireType.LengthDelimited).string(`${stringifyExactly(value)}\n`))
      break
    default:
      nested(writer, number, () => writeMessage(writer, kind, value as JsonSchema))
  }
}

/** Messages that choose their form by the value. */
function writeMessage(writer: BinaryWriter, kind: Kind, value: JsonSchema): void {
  switch (kind) {
    case 'Paths':
      writeNamed(writer, 2, 'PathItem', value)
      break
    case 'ParametersItem':
      if (value.$ref === undefined) writeMember(writer, 1, 'Parameter', value)
      else writeMember(writer, 2, 'JsonReference', value)
      break
    case 'Parameter':
      if (value.in === 'body') writeMember(writer, 1, 'BodyParameter', value)
      else nested(writer, 2, () => writeMember(writer, value.in === 'path' ? 4 : 3, value.in === 'path' ? 'PathParameter' : 'QueryParameter', value))
      break
    case 'ResponseValue':
      writeMember(writer, 1, 'Response', value)
      break
    case 'SecurityDefinition':
      writeMember(writer, 2, 'ApiKeySecurity', value)
      break
    case 'SecurityRequirement':
      writeNamed(writer, 1, 'StringArray', value)
      break
    case 'StringArray':
      writeMember(writer, 1, '[]string', value)
      break
    default:
      writeMembers(writer, value, kind)
  }
}
